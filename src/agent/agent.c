#include "agent/agent.h"

#include "agent/crew.h"
#include "sys/file.h"
#include "sys/stop.h"

static enum err_code model_open(const struct agent_config *c, struct model **ret, struct err *err)
{
    if (c->model_log != NULL)
        return model_open_log(c->model_log, c->model_log_ms, ret, err);
    if (c->endpoint == NULL)
        return err_raise(err, ERR_CONFIG, "no endpoint is named");
    return model_open_llm(c->endpoint, c->fallback, ret, err);
}

/* The endpoints' keys are secrets beside those that are named. */
static enum err_code secrets_of(struct arena *a, const struct agent_config *c, struct secrets *ret,
                                struct err *err)
{
    const char *env[32] = { 0 }, *file[32] = { 0 };
    const struct llm_spec *spec[] = { c->endpoint, c->fallback };
    size_t n_env = 0, n_file = 0;
    for (size_t i = 0; i < COUNT(spec); i++) {
        if (spec[i] != NULL && spec[i]->key_env != NULL)
            env[n_env++] = spec[i]->key_env;
        if (spec[i] != NULL && spec[i]->key_file != NULL)
            file[n_file++] = spec[i]->key_file;
    }
    for (const char *const *z = c->secret_env; z != NULL && *z != NULL && n_env + 1 < COUNT(env);)
        env[n_env++] = *z++;
    for (const char *const *z = c->secret_file;
         z != NULL && *z != NULL && n_file + 1 < COUNT(file);)
        file[n_file++] = *z++;
    return secrets_gather(a, env, file, ret, err);
}

enum err_code agent_run(const struct agent_config *config, int n_attempts, struct arena *a,
                        struct agent_result *ret, struct err *err)
{
    struct secrets secrets = { 0 };
    struct model *model = NULL;
    struct keep keep = { 0 };
    if (dir_make(config->out, 0755, err) != OK || secrets_of(a, config, &secrets, err) != OK ||
        model_open(config, &model, err) != OK)
        return err->code;
    enum err_code code = keep_open(&keep, config->out, err);
    struct crew_spec spec = {
        .config = config, .model = model, .secrets = &secrets, .keep = &keep, .n = n_attempts
    };
    struct agent_result r = { .n = n_attempts };
    if (code == OK)
        code = crew_run(&spec, a, &r.attempt, err);
    if (code == OK) {
        r.best = json_incref(keep.best);
        r.stopped = stop_asked();
        *ret = r;
    }
    keep_close(&keep);
    model->ops->close(model);
    return code;
}

void agent_result_fini(struct agent_result *r)
{
    for (int i = 0; r->attempt != NULL && i < r->n; i++)
        json_decref((json_t *)(uintptr_t)r->attempt[i].best);
    json_decref(r->best);
    *r = (struct agent_result){ 0 };
}

enum err_code agent_steer(const char *out, struct str text, struct err *err)
{
    own_arena tmp = { 0 };
    return file_write(path_join(&tmp, out, "steer"), text, 0644, err);
}
