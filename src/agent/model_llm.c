#include <stdlib.h>

#include "agent/model.h"

struct model_llm {
    struct model model;
    struct llm *llm;
    struct llm_endpoint *endpoint, *fallback;
};

static struct model_llm *of(struct model *m)
{
    return (struct model_llm *)m;
}

static enum err_code start(struct model *m, const struct model_ask *ask, void **ret_handle,
                           struct err *err)
{
    struct model_llm *l = of(m);
    struct llm_call *c = NULL;
    bool second = ask->fallback && l->fallback != NULL;
    struct llm_ask a = { .endpoint = second ? l->fallback : l->endpoint,
                         .chat = ask->chat,
                         .sampling = ask->sampling,
                         .tag = ask->tag };
    if (llm_start(l->llm, &a, &c, err) != OK)
        return err->code;
    *ret_handle = c;
    return OK;
}

static enum err_code step(struct model *m, int64_t wait_ms, int watch_fd, struct model_answer *ret,
                          struct err *err)
{
    struct llm_call *c = NULL;
    llm_watch(of(m)->llm, watch_fd);
    if (llm_step(of(m)->llm, wait_ms, &c, err) != OK)
        return err->code;
    *ret = c == NULL ? (struct model_answer){ 0 }
                     : (struct model_answer){ llm_call_tag(c), llm_call_outcome(c), c };
    return OK;
}

static void cancel(struct model *m, void *handle)
{
    (void)m;
    llm_cancel(handle);
}

static struct llm_progress progress(const struct model *m, const void *handle)
{
    (void)m;
    return llm_call_progress(handle);
}

static void answer_free(struct model *m, struct model_answer *answer)
{
    (void)m;
    llm_call_free(answer->own);
    *answer = (struct model_answer){ 0 };
}

static void close_llm(struct model *m)
{
    llm_close(of(m)->llm);
    free(m);
}

static bool has_fallback(const struct model *m)
{
    return ((const struct model_llm *)m)->fallback != NULL;
}

enum err_code model_open_llm(const struct llm_spec *endpoint, const struct llm_spec *fallback,
                             struct model **ret, struct err *err)
{
    static const struct model_ops ops = { .start = start,
                                          .step = step,
                                          .cancel = cancel,
                                          .progress = progress,
                                          .answer_free = answer_free,
                                          .close = close_llm,
                                          .has_fallback = has_fallback };
    struct model_llm *l = calloc(1, sizeof *l);
    if (l == NULL)
        return err_sys(err, "no memory for a model");
    l->model.ops = &ops;
    enum err_code code = llm_open(&l->llm, err);
    if (code == OK)
        code = llm_endpoint_add(l->llm, endpoint, &l->endpoint, err);
    if (code == OK && fallback != NULL)
        code = llm_endpoint_add(l->llm, fallback, &l->fallback, err);
    if (code != OK) {
        llm_close(l->llm);
        free(l);
        return code;
    }
    *ret = &l->model;
    return OK;
}
