#include "attacks/rows.h"

#include <stdio.h>
#include <string.h>

#include "sys/file.h"

bool row_wanted(const struct row *r, const char *status)
{
    struct str list = r->wanted;
    struct str word = { 0 };
    while (str_cut(&list, ' ', &word))
        if (str_eq(word, str_from(status)))
            return true;
    return false;
}

int64_t row_first_ms(const struct row *r)
{
    return str_eq(r->wanted, S("timeout")) ? 500 : 0;
}

/* The two lines that say what it is. */
static enum err_code head_read(const char *name, struct str text, const char *comment,
                               struct row *r, struct err *err)
{
    struct str first = { 0 };
    char want[16];
    int n = snprintf(want, sizeof want, "%s want: ", comment);
    if (!str_cut(&text, '\n', &first) || !str_starts(first, str_from(want)) ||
        !str_cut(&text, '\n', &r->what) || !str_starts(r->what, str_from(comment)))
        return err_raise(err, ERR_FORMAT, "'%s' does not begin with '%s'", name, want);
    r->wanted = str_drop(first, (size_t)n);
    r->what = str_trim(str_drop(r->what, strlen(comment)));
    return OK;
}

static bool bound_by_itself(struct arena *a, const char *dir, struct str name)
{
    return str_ends(name, S(".py")) &&
           path_exists(arena_fmt(a, "%s/%.*s.cpp", dir, (int)name.len - 3, name.ptr));
}

static enum err_code torch_row_read(struct arena *a, enum target target, const char *dir,
                                    const char *name, struct row *r, struct err *err)
{
    struct candidate *c = &r->c;
    const char *own = arena_fmt(a, "%s/%.*s.cpp", dir, (int)strlen(name) - 3, name);
    const char *shared = target == TARGET_CUDA ? "row_binding_cuda.cpp" : "row_binding.cpp";
    const char *binding = bound_by_itself(a, dir, str_from(name)) ? own : path_join(a, dir, shared);
    *c = (struct candidate){ .target = target, .contract = CONTRACT_TORCH, .author = "row" };
    c->file[0].name = MODEL_NEW;
    c->file[1].name = "row_binding.cpp";
    c->n_files = 2;
    r->name = name;
    if (file_read(a, path_join(a, dir, name), 1 << 20, &c->file[0].text, err) != OK ||
        file_read(a, binding, 1 << 20, &c->file[1].text, err) != OK ||
        head_read(name, c->file[0].text, "#", r, err) != OK)
        return err->code;
    if (target == TARGET_CUDA) {
        c->file[c->n_files].name = "row.cu";
        if (file_read(a, path_join(a, dir, "row.cu"), 1 << 20, &c->file[c->n_files++].text, err) !=
            OK)
            return err->code;
    }
    candidate_seal(c);
    return OK;
}

/* The row's own source and the header that all rows of the folder share. */
static enum err_code row_read(struct arena *a, enum target target, const char *dir,
                              const char *name, struct row *r, struct err *err)
{
    bool cuda = target == TARGET_CUDA;
    if (str_ends(str_from(name), S(".py")))
        return torch_row_read(a, target, dir, name, r, err);
    const char *shared = cuda ? "row.cuh" : "row.h";
    struct str text = { 0 };
    struct candidate *c = &r->c;
    r->name = name;
    c->target = target;
    c->author = "row";
    c->n_files = 2;
    c->file[1].name = shared;
    if (file_read(a, path_join(a, dir, name), 1 << 20, &text, err) != OK ||
        file_read(a, path_join(a, dir, shared), 1 << 20, &c->file[1].text, err) != OK)
        return err->code;
    c->file[0] = (struct source_file){ cuda ? "main.cu" : "main.c", text };
    candidate_seal(c);
    return head_read(name, text, "//", r, err);
}

enum err_code rows_read(struct arena *a, enum target target, const char *dir, struct row **ret,
                        size_t *ret_n, struct err *err)
{
    static const char *const endings[] = { ".c", ".cu", ".py", NULL };
    struct str *names;
    if (dir_list(a, dir, endings, &names, ret_n, err) != OK)
        return err->code;
    size_t n = *ret_n;
    *ret = arena_new(a, struct row, n);
    *ret_n = 0;
    for (size_t i = 0; i < n; i++) {
        /* Bindings of their own are for the cpu. */
        if (str_eq(names[i], S("row.cu")) ||
            (target == TARGET_CUDA && bound_by_itself(a, dir, names[i])))
            continue;
        if (row_read(a, target, dir, str_z(a, names[i]), &(*ret)[(*ret_n)++], err) != OK)
            return err->code;
    }
    return OK;
}
