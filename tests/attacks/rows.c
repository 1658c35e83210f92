#include "attacks/rows.h"

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

/* The row's own source and the header that all rows of the folder share. */
static enum err_code row_read(struct arena *a, enum target target, const char *dir,
                              const char *name, struct row *r, struct err *err)
{
    bool cuda = target == TARGET_CUDA;
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
    struct str first = { 0 };
    if (!str_cut(&text, '\n', &first) || !str_starts(first, S("// want: ")) ||
        !str_cut(&text, '\n', &r->what) || !str_starts(r->what, S("// ")))
        return err_raise(err, ERR_FORMAT, "'%s' does not begin with '// want: ' and '// '", name);
    r->wanted = str_drop(first, 9);
    r->what = str_drop(r->what, 3);
    return OK;
}

enum err_code rows_read(struct arena *a, enum target target, const char *dir, struct row **ret,
                        size_t *ret_n, struct err *err)
{
    static const char *const endings[] = { ".c", ".cu", NULL };
    struct str *names;
    if (dir_list(a, dir, endings, &names, ret_n, err) != OK)
        return err->code;
    *ret = arena_new(a, struct row, *ret_n);
    for (size_t i = 0; i < *ret_n; i++)
        if (row_read(a, target, dir, str_z(a, names[i]), &(*ret)[i], err) != OK)
            return err->code;
    return OK;
}
