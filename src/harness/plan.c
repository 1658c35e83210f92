#include "harness/plan.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ca_runner.h"
#include "core/json.h"

static void value_put(struct ca_plan_value *to, const struct value_sig *v)
{
    *to = (struct ca_plan_value){
        .kind = v->kind, .dtype = v->dtype, .rank = v->rank, .alias = v->alias, .i = v->i, .r = v->r
    };
    snprintf(to->name, sizeof to->name, "%s", v->name);
    snprintf(to->text, sizeof to->text, "%s", v->text ? v->text : "");
    for (int i = 0; i < v->rank; i++) {
        to->shape[i] = v->shape[i];
        to->stride[i] = v->stride[i];
    }
}

static enum err_code places_put(struct ca_plan_place **at, const json_t *list, size_t n,
                                const char *what, struct err *err)
{
    if (!json_is_array(list) || json_array_size(list) != n)
        return err_raise(err, ERR_WORKER, "bind: %zu places for %zu %s", json_array_size(list), n,
                         what);
    for (size_t i = 0; i < n; i++, (*at)++) {
        const json_t *p = json_array_get(list, i);
        **at = (struct ca_plan_place){ .slab = -1 };
        if (json_is_null(p))
            continue;
        const json_t *at_slab = json_array_get(p, 0), *at_offset = json_array_get(p, 1);
        json_int_t slab = json_is_integer(at_slab) ? json_integer_value(at_slab) : -1;
        json_int_t offset = json_is_integer(at_offset) ? json_integer_value(at_offset) : -1;
        if (slab < 0 || slab >= CA_SLABS_MAX || offset < 0)
            return err_raise(err, ERR_WORKER, "bind: place %zu of %s", i, what);
        **at = (struct ca_plan_place){ slab, (uint64_t)offset };
    }
    return OK;
}

static enum err_code fill(const struct signature *sig, const json_t *bind, const json_t *sets,
                          unsigned char *bytes, struct err *err)
{
    struct ca_plan *plan = (void *)bytes;
    struct ca_plan_value *v = (void *)(plan + 1);
    size_t n_sets = json_array_size(sets);
    *plan = (struct ca_plan){ CA_MSG_MAGIC,        (int32_t)sig->in.n, (int32_t)sig->param.n,
                              (int32_t)sig->out.n, (int32_t)n_sets,    0 };
    for (size_t i = 0; i < sig->in.n; i++)
        value_put(v++, &sig->in.v[i]);
    for (size_t i = 0; i < sig->param.n; i++)
        value_put(v++, &sig->param.v[i]);
    for (size_t i = 0; i < sig->out.n; i++)
        value_put(v++, &sig->out.v[i]);
    struct ca_plan_place *p = (void *)v;
    for (size_t s = 0; s < n_sets; s++) {
        const json_t *set = json_array_get(sets, s);
        if (places_put(&p, json_object_get(set, "in"), sig->in.n, "inputs", err) != OK ||
            places_put(&p, json_object_get(set, "out"), sig->out.n, "outputs", err) != OK)
            return err->code;
    }
    return places_put(&p, json_object_get(bind, "param"), sig->param.n, "parameters", err);
}

enum err_code plan_make(const struct signature *sig, const json_t *bind, int *ret_fd,
                        uint64_t *ret_bytes, int *ret_sets, struct err *err)
{
    json_t *sets = NULL;
    if (json_get_list(bind, "sets", &sets, err) != OK)
        return err->code;
    size_t n_sets = json_array_size(sets), values = sig->in.n + sig->param.n + sig->out.n;
    if (n_sets < 1 || n_sets > CA_SETS_MAX)
        return err_raise(err, ERR_WORKER, "bind: %zu sets", n_sets);
    size_t bytes =
        sizeof(struct ca_plan) + values * sizeof(struct ca_plan_value) +
        (n_sets * (sig->in.n + sig->out.n) + sig->param.n) * sizeof(struct ca_plan_place);
    own_fd fd = memfd_create("plan", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0 || ftruncate(fd, (off_t)bytes) != 0)
        return err_sys(err, "make the plan");
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED)
        return err_sys(err, "map the plan");
    enum err_code code = fill(sig, bind, sets, at, err);
    munmap(at, bytes);
    if (code != OK)
        return code;
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) != 0)
        return err_sys(err, "seal the plan");
    *ret_fd = own_fd_take(&fd);
    *ret_bytes = bytes;
    *ret_sets = (int)n_sets;
    return OK;
}
