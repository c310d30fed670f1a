// SPDX-License-Identifier: Apache-2.0
// shapes_cc SECONDS: names only C++ has, for the symbol tests: namespaces, templates, overloads, lambdas,
// virtual functions, operators, inlined members.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace shapes {

struct Shape {
	virtual ~Shape() = default;
	virtual double area() const = 0;
};

template <typename Number, int Sides> class Polygon : public Shape {
      public:
	explicit Polygon(Number length) : length_(length) {}
	double area() const override
	{
		double sum = 0;
		for (int i = 0; i < Sides; i++)
			sum += piece(i);
		return sum;
	}
	bool operator<(const Polygon &other) const { return length_ < other.length_; }

      private:
	double piece(int side) const { return double(length_) * double(length_) / (side + 1.0); }
	Number length_;
};

namespace {
__attribute__((noinline)) double sum_areas(const std::vector<std::unique_ptr<Shape>> &all)
{
	double sum = 0;
	std::for_each(all.begin(), all.end(), [&sum](const auto &shape) { sum += shape->area(); });
	return sum;
}
} // namespace

__attribute__((noinline)) uint64_t count(const std::string &text, char wanted)
{
	return uint64_t(std::count(text.begin(), text.end(), wanted));
}

__attribute__((noinline)) uint64_t count(const std::map<std::string, int> &words)
{
	uint64_t sum = 0;
	for (const auto &[word, times] : words)
		sum += count(word, 'a') * uint64_t(times);
	return sum;
}

} // namespace shapes

int main(int argc, char **argv)
{
	using namespace shapes;
	std::time_t end = std::time(nullptr) + (argc > 1 ? std::atol(argv[1]) : 1);
	std::vector<std::unique_ptr<Shape>> all;
	std::map<std::string, int> words;
	std::function<double()> work = [&] { return sum_areas(all); };
	volatile double sum = 0;

	for (int i = 0; i < 500; i++) {
		all.push_back(std::make_unique<Polygon<float, 5>>(float(i)));
		all.push_back(std::make_unique<Polygon<int64_t, 8>>(i));
		words[std::string(size_t(i % 40), 'a')] += i;
	}
	while (std::time(nullptr) < end)
		sum = sum + work() + double(count(words));
	return 0;
}
