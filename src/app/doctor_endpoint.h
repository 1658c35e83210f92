/* app/doctor_endpoint.h -- a model's server, asked what it can do. */
#ifndef APP_DOCTOR_ENDPOINT_H
#define APP_DOCTOR_ENDPOINT_H

#include "app/endpoint.h"

struct doctor_endpoint {
    const struct endpoint_options *options;
    bool thorough, json;
};

/* Asks, prints, keeps the record. *ret_usable: an agent can work with it. */
MUST_USE
enum err_code doctor_endpoint(const struct doctor_endpoint *d, bool *ret_usable, struct err *err);

#endif
