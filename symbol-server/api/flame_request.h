/* SPDX-License-Identifier: Apache-2.0 */
/* What /flamegraph and /top have in common: parameters → named stacks → totals and accounting. */
#ifndef SYMBOL_SERVER_API_FLAME_REQUEST_H
#define SYMBOL_SERVER_API_FLAME_REQUEST_H

#include <stdbool.h>

#include "symbol-server/api/answer_format.h"
#include "symbol-server/api/api.h"
#include "symbol-server/api/nothing.h"
#include "symbol-server/api/parameters.h"
#include "symbol-server/api/query_life.h"
#include "symbol-server/flamegraph/accounting.h"
#include "symbol-server/formats/flame_formats.h"
#include "symbol-server/naming/named_stacks.h"
#include "symbol-server/query/query.h"

enum { ROOT_FRAMES_MAX = 2048 };

struct flame_request {
	struct query query;
	struct stack_view view;
	struct pattern *focus, *ignore, *hide, *hide_module, *only_module;
	struct build_id build; /* view.build, where one is asked for */
	bool by_samples;       /* value=samples */
	bool is_gauge;         /* the type: values are means over time */
	bool is_whole;         /* ERROR_LIMIT where it would be cut for want of memory */
	struct parameters asked;
	/* what it led to */
	struct query_life *life;
	struct samples_result *result;
	struct named_stacks *stacks;
	enum profile_sampling sampling;
	struct sampling sampled; /* sampling_error.h */
	double squares;          /* of what each() or the tree got */
	struct stack_totals totals;
	struct nothing nothing;     /* where the result has no stack */
	uint64_t cpus;              /* of the hosts that reported; 0: not known */
	uint64_t held;              /* bytes of the result, as its life knows */
	struct flame_frame *turned; /* flame_request_as_taken() */
	size_t turned_room;
};

/* Checks the endpoint's parameters and reads those that choose stacks and frames. Release it in
 * either case. */
bool flame_request_read(struct http_request *request, enum endpoint endpoint,
			struct flame_request *out, struct error *err);

/* Labels to group by, separated by commas: where no parameter asks for any. */
bool flame_request_group(struct flame_request *flame, const char *groups, struct error *err);

/* The parameter of that name, a build-id in hex; view.build becomes NULL without one. */
bool flame_request_read_build(struct flame_request *flame, const char *name, struct error *err);

/* Asks the store and names what comes. Whoever wants the result's stacks in another order does one
 * after the other. life: that of an earlier part of the same request, or NULL. */
bool flame_request_run(struct flame_request *flame, struct api *api, struct error *err);
bool flame_request_ask(struct flame_request *flame, struct api *api, struct error *err);
bool flame_request_name(struct flame_request *flame, struct api *api, struct error *err);

/* max_nodes and min_share; without them all of it, as far as answers go. */
bool flame_request_limit(const struct flame_request *flame, struct flame_limit *out,
			 struct error *err);

/* Each stack that is shown, with the chosen value; fills totals. */
bool flame_request_each(struct flame_request *flame, named_stack_fn *each, void *context,
			struct error *err);

/* During each(): frames from root to leaf, below their groups, also where the view is inverted;
 * borrowed until the next call. NULL: no memory. */
const struct flame_frame *flame_request_as_taken(struct flame_request *flame,
						 const struct flame_frame *frames, size_t depth);

/* The heaviest stacks first, where there are more nodes than there is room for. */
void flame_request_sort(struct flame_request *flame, size_t room);

/* The same into a tree, which is quicker; it is summed up then. limit: of the cut that
 * follows. */
bool flame_request_tree(struct flame_request *flame, struct flame_tree *tree,
			struct flame_limit limit, struct error *err);

/* The unit of the values given to each(). */
const char *flame_request_unit(const struct flame_request *flame);

/* stack_ids=true goes with JSON: ERROR_OPTION. */
bool stack_ids_fit(const struct answer_format *format, struct error *err);

/* From totals and the hosts' counts; cut is of what did not fit --query-memory, and the caller adds
 * to it. */
void flame_request_accounting(const struct flame_request *flame, struct accounting *out);

/* What every format's answer says, its accounting, which is filled, too; what it is made of comes
 * on top. */
struct flame_answer flame_request_answer(const struct flame_request *flame,
					 struct accounting *accounting);

/* The spread where there are too few rows to tell. */
double flame_request_unknown_spread(const struct flame_request *flame);

/* NULL: of the type all there is was told. */
const struct sampling *flame_request_sampling(const struct flame_request *flame);

/* Of struct sampling: 0, too, where they do not tell. */
double hosts_windows(const struct host_accounting *hosts, uint32_t count);

/* Adds what the hosts took and lost. */
void hosts_accounting(const struct host_accounting *hosts, uint32_t count, struct accounting *out);

/* What it led to is forgotten, and it can be asked anew. */
void flame_request_forget(struct flame_request *flame);

void flame_request_release(struct flame_request *flame);

/* "a;b\;c" → "a", "b;c": frame names from below the root; '\' escapes ';' and itself. */
bool root_path_parse(const char *text, struct arena *arena, const char *const **names,
		     unsigned *count, struct error *err);

#endif
