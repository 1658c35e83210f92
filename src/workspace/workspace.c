#include "workspace/workspace.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "sys/file.h"

#define FROZEN 0444
#define LAID_MAX ((size_t)1 << 20)

static const struct {
    enum contract contract;
    const char *from, *to;
} laid[] = {
    { CONTRACT_NATIVE, "include/cuda_agent.h", "cuda_agent.h" },
    { CONTRACT_NATIVE, "skills/workspace/README.md", "README.md" },
    { CONTRACT_TORCH, "skills/workspace/TORCH.md", "README.md" },
    { CONTRACT_TORCH, "workdir/binding.cpp", "binding.cpp" },
    { CONTRACT_TORCH, "workdir/binding_registry.h", "binding_registry.h" },
    { CONTRACT_TORCH, "workdir/utils/__init__.py", "utils/__init__.py" },
    { CONTRACT_TORCH, "workdir/utils/examiner.py", "utils/examiner.py" },
    { CONTRACT_TORCH, "workdir/utils/compile.sh", "utils/compile.sh" },
    { CONTRACT_TORCH, "workdir/utils/verification.py", "utils/verification.py" },
    { CONTRACT_TORCH, "workdir/utils/profiling.py", "utils/profiling.py" },
};

enum err_code workspace_lay(const char *dir, const struct task *task, enum contract contract,
                            struct err *err)
{
    own_arena tmp = { 0 };
    const char *share = NULL;
    if (share_dir(&tmp, &share, err) != OK ||
        dir_make(path_join(&tmp, dir, "kernels"), 0755, err) != OK ||
        (contract == CONTRACT_TORCH && dir_make(path_join(&tmp, dir, "utils"), 0755, err) != OK) ||
        file_write(path_join(&tmp, dir, "model.py"), task->source, FROZEN, err) != OK)
        return err_within(err, "workspace '%s'", dir);
    for (size_t i = 0; i < COUNT(laid); i++) {
        struct str bytes;
        if (laid[i].contract != contract)
            continue;
        if (file_read(&tmp, path_join(&tmp, share, laid[i].from), LAID_MAX, &bytes, err) != OK ||
            file_write(path_join(&tmp, dir, laid[i].to), bytes, FROZEN, err) != OK)
            return err_within(err, "workspace '%s'", dir);
    }
    return OK;
}

/* Swap two folders in one step; where the file system has no exchange, by way of a third
 * name: an interruption between the two renames leaves the files under OLD. */
static enum err_code folder_swap(const char *fresh, const char *place, const char *old,
                                 struct err *err)
{
    if (renameat2(AT_FDCWD, fresh, AT_FDCWD, place, RENAME_EXCHANGE) == 0)
        return rename(fresh, old) == 0 ? OK : err_sys(err, "rename '%s'", fresh);
    if (errno != ENOENT && errno != EINVAL && errno != ENOSYS)
        return err_sys(err, "put '%s' in place", place);
    if (rename(place, old) != 0 && errno != ENOENT)
        return err_sys(err, "rename '%s'", place);
    return rename(fresh, place) == 0 ? OK : err_sys(err, "rename '%s'", fresh);
}

enum err_code workspace_place(const char *fresh, const char *place, struct err *err)
{
    own_arena tmp = { 0 };
    struct err later = { 0 }; /* litter is no reason to fail */
    const char *old = arena_fmt(&tmp, "%s-old", fresh);
    enum err_code code = folder_swap(fresh, place, old, err);
    (void)!dir_remove(old, &later);
    return code;
}

enum err_code workspace_put(const char *dir, const struct candidate *c, struct err *err)
{
    own_arena tmp = { 0 };
    const char *fresh = NULL;
    if (dir_make(dir, 0755, err) != OK || dir_temp(&tmp, dir, ".kernels", &fresh, err) != OK)
        return err->code;
    enum err_code code = OK;
    const struct source_file *top = NULL;
    for (size_t i = 0; i < c->n_files && code == OK; i++) {
        const struct source_file *f = &c->file[i];
        if (strcmp(f->name, MODEL_NEW) == 0)
            top = f;
        else
            code = file_write(path_join(&tmp, fresh, f->name), f->text, 0644, err);
    }
    if (code == OK && chmod(fresh, 0755) != 0)
        code = err_sys(err, "open up '%s'", fresh);
    if (code == OK)
        code = workspace_place(fresh, path_join(&tmp, dir, "kernels"), err);
    if (code == OK && top != NULL)
        code = file_write(path_join(&tmp, dir, MODEL_NEW), top->text, 0644, err);
    if (code == OK)
        return OK;
    struct err later = { 0 }; /* must not hide the cause */
    (void)!dir_remove(fresh, &later);
    return err_within(err, "workspace '%s'", dir);
}

enum err_code workspace_get(struct arena *a, const char *dir, const struct task *task,
                            enum target target, struct candidate *ret, struct err *err)
{
    own_arena tmp = { 0 };
    struct str model;
    if (file_read(&tmp, path_join(&tmp, dir, "model.py"), TASK_SOURCE_MAX, &model, err) != OK)
        return err_within(err, "workspace");
    if (!str_eq(model, task->source)) {
        err_raise(err, ERR_STATE, "'%s/model.py' is not the task '%s' any more", dir, task->name);
        return err_hint(err, "model.py is frozen; lay a fresh workspace");
    }
    return candidate_read(a, dir, target, ret, err);
}
