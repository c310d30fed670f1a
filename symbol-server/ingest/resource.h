/* SPDX-License-Identifier: Apache-2.0 */
/* A resource's attributes → the labels of a series, or an agent's own counters (schema/README.md).
 */
#ifndef SYMBOL_SERVER_INGEST_RESOURCE_H
#define SYMBOL_SERVER_INGEST_RESOURCE_H

#include "symbol-server/ingest/dictionary.h"
#include "symbol-server/store/sample_context.h"

enum {
	LABELS_MAX = 30,        /* per series; what is over is left out */
	ATTRIBUTES_MAX = 16,    /* of these, of attributes; likewise, and counted */
	ATTRIBUTE_MAX = 256,    /* bytes of their values */
	LABEL_NAME_MAX = 64,    /* bytes */
	LABEL_VALUE_MAX = 2048, /* bytes */
	RESOURCE_NUMBERS_MAX = 112,
};

struct resource { /* what the attributes say; texts are borrowed */
	struct text service, host, process, executable_path, executable_name, container, pod,
		namespace_name;
	struct batch_label labels[LABELS_MAX]; /* farflame.label.* */
	uint32_t label_count;
	struct batch_label attributes[ATTRIBUTES_MAX]; /* others that are labels */
	uint32_t attribute_count, attributes_left_out;
	struct batch_label told[CONTEXT_PROCESS_MAX]; /* what a process is: sample_context.h */
	uint32_t told_count;
	struct text kernel_release, version;
	bool is_agent; /* has farflame.agent.id */
	uint8_t agent_id[16];
	struct {
		struct text name;
		uint64_t value;
	} numbers[RESOURCE_NUMBERS_MAX]; /* farflame.* */
	uint32_t number_count;
};

void resource_init(struct resource *resource);
/* Adds one Resource message; a resource may come in parts. */
enum dictionary_result resource_read(struct dictionary *dictionary, struct wire wire,
				     struct resource *resource);

/* The batch's series for these labels, sorted, nothing twice, nothing empty; others of the same
 * name, those without room and those that the API cannot ask for are counted in
 * attributes_left_out. sender: the host label of senders that name no host. */
enum dictionary_result resource_series(struct dictionary *dictionary, struct resource *resource,
				       struct text sender, struct batch_series *series);

/* Fills everything but the profile's id and times. */
void resource_counters(const struct resource *resource, struct batch_counters *counters);

#endif
