/* SPDX-License-Identifier: Apache-2.0 */
/* Loads whose truth is known: functions of Zipf weights, minutes that vary by themselves, and what
 * is drawn of them. The generator is seeded: what it draws is the same at each run. */
#ifndef TESTS_SIMULATED_LOAD_H
#define TESTS_SIMULATED_LOAD_H

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { SIM_FUNCTIONS = 200, SIM_MINUTES = 64 };

static uint64_t sim_state = 88172645463325252u;

static inline double sim_uniform(void)
{
	sim_state ^= sim_state << 13;
	sim_state ^= sim_state >> 7;
	sim_state ^= sim_state << 17;
	return ((double)(sim_state >> 11) + 0.5) / 9007199254740992.0;
}

static inline double sim_gauss(void)
{
	return sqrt(-2 * log(sim_uniform())) * cos(6.283185307179586 * sim_uniform());
}

/* Knuth's product for small means, the normal distribution for large ones. */
static inline uint64_t sim_poisson(double mean)
{
	double product, limit;
	uint64_t count = 0;

	if (mean <= 0)
		return 0;
	if (mean > 30) {
		double drawn = floor(mean + sqrt(mean) * sim_gauss() + 0.5);

		return drawn > 0 ? (uint64_t)drawn : 0;
	}
	limit = exp(-mean);
	for (product = sim_uniform(); product > limit; product *= sim_uniform())
		count++;
	return count;
}

/* Lognormal factors of mean 1 around which minutes vary; neighbours are correlated by rho. */
static inline void sim_vary(double *factors, unsigned count, unsigned stride, double cv, double rho)
{
	double width = sqrt(log(1 + cv * cv)), at = sim_gauss();

	for (unsigned i = 0; i < count; i++) {
		factors[(size_t)i * stride] *= exp(width * at - width * width / 2);
		at = rho * at + sqrt(1 - rho * rho) * sim_gauss();
	}
}

struct sim_load {
	double rate;    /* samples a minute of all hosts */
	double cv;      /* of each function's minutes, with rho between neighbours */
	double load_cv; /* of all functions' minutes together */
	double rho;
};

/* Expected samples by minute and function. */
static inline void sim_expect(const struct sim_load *load, unsigned minutes,
			      double expected[][SIM_FUNCTIONS])
{
	double all = 0, common[SIM_MINUTES];

	for (unsigned f = 0; f < SIM_FUNCTIONS; f++)
		all += 1.0 / (f + 1);
	for (unsigned m = 0; m < minutes; m++) {
		common[m] = 1;
		for (unsigned f = 0; f < SIM_FUNCTIONS; f++)
			expected[m][f] = load->rate / (f + 1) / all;
	}
	if (load->load_cv > 0)
		sim_vary(common, minutes, 1, load->load_cv, load->rho);
	for (unsigned f = 0; load->cv > 0 && f < SIM_FUNCTIONS; f++)
		sim_vary(&expected[0][f], minutes, SIM_FUNCTIONS, load->cv, load->rho);
	for (unsigned m = 0; m < minutes; m++)
		for (unsigned f = 0; f < SIM_FUNCTIONS; f++)
			expected[m][f] *= common[m];
}

#endif
