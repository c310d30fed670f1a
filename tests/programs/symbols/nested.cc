// SPDX-License-Identifier: Apache-2.0
// For the symbol tests: functions inside of functions, classes and namespaces without names.
extern int outside(int);
namespace spaces {
struct base {
	base();
	virtual ~base();
	virtual int value() const { return outside(1); }
};
struct derived : virtual base {
	derived(int);
	~derived() override;
	int value() const override { return outside(2); }
	int held;
};
base::base() { outside(3); }
base::~base() { outside(4); }
derived::derived(int x) : held(outside(x)) {}
derived::~derived() { outside(held); }
namespace {
struct hidden {
	static int twice(int x);
	int held;
};
__attribute__((noinline)) int hidden::twice(int x) { return outside(x) * 2; }
__attribute__((noinline)) int quiet(int x) { return hidden::twice(x) + outside(7); }
}
template <class T> __attribute__((noinline)) T generic(T x) { return x + quiet(int(x)); }
inline int through_local(int n)
{
	struct local {
		int held;
		__attribute__((noinline)) int run() { return outside(held) + outside(9); }
	};
	local l{n};
	return l.run() + 1;
}
}
int nested_entry(int x)
{
	auto closure = [&](int y) __attribute__((noinline)) { return outside(x + y) * 5; };
	spaces::derived d(x);
	return spaces::generic(x) + int(spaces::generic(2.5)) + closure(3) + spaces::through_local(x) + d.value();
}
