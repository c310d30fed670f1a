/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes of resources → labels of series, and the names by which the API knows these. Pure.
 *
 * A label's name has no dot: deployment.environment.name is kept as deployment_environment_name and
 * found under both, because Prometheus' and Grafana's selectors cannot say the first one.
 * Attributes that OpenTelemetry's semantic conventions (1.37) call what we have a label for are
 * that label, service.name and service_name service. */
#ifndef SYMBOL_SERVER_STORE_ATTRIBUTE_LABELS_H
#define SYMBOL_SERVER_STORE_ATTRIBUTE_LABELS_H

#include <stdbool.h>
#include <stddef.h>

enum { LABEL_NAME_BYTES = 65 }; /* with its NUL */

/* The name of the API, or of an attribute of a resource, as a label's in out. A name with a dot
 * that is no resource's by the conventions stays as it is: it is one of samples (sample_context.h).
 */
void label_name_resolve(const char *name, char out[LABEL_NAME_BYTES]);

/* Whether an attribute of a resource is kept as a label: not what we know of ourselves, nor what is
 * another one for every process by its meaning (ids, addresses, command lines). */
bool label_is_of_attribute(const char *key, size_t length);

#endif
