/* app/endpoint.h -- the options that say which model is spoken to, and what is kept about it.
 *
 * What `doctor --endpoint` finds and what later runs learn is one file for each address and model,
 * CUDA_AGENT_HOME/endpoints/HASH.json: the compat record, the steps that led to it, the window.
 * Keys stand in variables or files; an option only names them.
 *
 * Errors: ERR_USAGE and ERR_CONFIG for options, ERR_SYSTEM for the file, ERR_FORMAT for its bytes.
 */
#ifndef APP_ENDPOINT_H
#define APP_ENDPOINT_H

#include "core/field.h"
#include "llm/llm.h"
#include "llm/reply.h"

struct endpoint_options {
    struct str url, model, key_env, key_file, ca_file, proxy, compat;
    int dialect; /* index into endpoint_dialects */
    int64_t window, max_output, in_flight;
    double temperature; /* -1: the server's own */
    double price_input, price_cached,
        price_output; /* a million tokens; price_cached -1: as input */
    struct str fallback, fallback_model, fallback_key_env, fallback_key_file;
    int fallback_dialect;
};

#define ENDPOINT_DEFAULTS                                                          \
    {                                                                              \
        .temperature = -1, .price_cached = -1, .max_output = 16384, .in_flight = 8 \
    }

extern const char *const endpoint_dialects[]; /* auto, openai, anthropic */

/* Where it is. */
#define ENDPOINT_ADDRESS_FIELDS(o)                                                                 \
    FIELD_TEXT("endpoint", &(o).url, "address of a model's server: http(s)://HOST[:PORT]"),        \
        FIELD_TEXT("model", &(o).model, "its name there [the only one in the server's list]"),     \
        FIELD_CHOICE("dialect", &(o).dialect, endpoint_dialects,                                   \
                     "auto: as doctor has found, else by the address"),                            \
        FIELD_TEXT("key_env", &(o).key_env, "name of the variable that holds the key"),            \
        FIELD_TEXT("key_file", &(o).key_file, "or the file that does"),                            \
        FIELD_TEXT("ca_file", &(o).ca_file, "certificates to trust [the system's]"),               \
        FIELD_TEXT("proxy", &(o).proxy, "proxy to go through [none, whatever the variables say]"), \
        FIELD_TEXT("compat", &(o).compat,                                                          \
                   "what it takes, over what is known: 'NAME=VALUE ...' (docs/llm.md)"),           \
        FIELD_INT("window", &(o).window, 0, 100000000,                                             \
                  "tokens that fit in all; 0: as doctor found")

/* How it is used, and what to do when it fails. */
#define ENDPOINT_USE_FIELDS(o)                                                                     \
    FIELD_INT("max_output", &(o).max_output, 256, 10000000, "tokens of one answer"),               \
        FIELD_REAL("temperature", &(o).temperature, -1, 2, "of sampling; -1: the server's own"),   \
        FIELD_INT("in_flight", &(o).in_flight, 1, 100000, "requests at a time"),                   \
        FIELD_REAL("price_input", &(o).price_input, 0, 1e6, "of a million tokens of input"),       \
        FIELD_REAL("price_cached", &(o).price_cached, -1, 1e6,                                     \
                   "of a million that the server had cached; -1: as input"),                       \
        FIELD_REAL("price_output", &(o).price_output, 0, 1e6, "of a million tokens of output"),    \
        FIELD_TEXT("fallback", &(o).fallback, "address of another endpoint, for when this fails"), \
        FIELD_TEXT("fallback_model", &(o).fallback_model, "its model"),                            \
        FIELD_CHOICE("fallback_dialect", &(o).fallback_dialect, endpoint_dialects, "its dialect"), \
        FIELD_TEXT("fallback_key_env", &(o).fallback_key_env, "variable with its key"),            \
        FIELD_TEXT("fallback_key_file", &(o).fallback_key_file, "or file with its key")

#define ENDPOINT_FIELDS(o) ENDPOINT_ADDRESS_FIELDS(o), ENDPOINT_USE_FIELDS(o)

/* What is kept about an address and a model. */
struct endpoint_record {
    bool found;        /* false: nothing is kept */
    const char *model; /* also where it is kept under no name: the one that the server has */
    enum dialect dialect;
    struct compat compat;
    int64_t window;           /* tokens; 0: unknown */
    const char *const *steps; /* what was left out on the way; static or the caller's */
    size_t n_steps;
};

MUST_USE
enum err_code endpoint_record_read(struct arena *a, const char *url, const char *model,
                                   struct endpoint_record *ret, struct err *err);
MUST_USE
enum err_code endpoint_record_write(const char *url, const char *model,
                                    const struct endpoint_record *record, struct err *err);

/* For llm_endpoint_add(), the kept record under the options' own settings; *ret_record is what was
 * kept, with the options' window and dialect in it. Texts live in the arena. */
MUST_USE
enum err_code endpoint_spec(struct arena *a, const struct endpoint_options *o, struct llm_spec *ret,
                            struct endpoint_record *ret_record, struct err *err);

/* The same options for the fallback; false where none is named. */
bool endpoint_fallback(const struct endpoint_options *o, struct endpoint_options *ret);

/* Keep what the ladder has learnt since, where that is anything; the options' own settings are not
 * kept. */
MUST_USE
enum err_code endpoint_learnt(const struct llm_spec *spec, const struct endpoint_record *record,
                              const struct llm_endpoint *e, struct err *err);

/* In the currency of the prices. */
double endpoint_cost(const struct endpoint_options *o, const struct reply_usage *u);

#endif
