#include "app/config.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <yaml.h>

#include "sys/file.h"

#define FILE_MAX ((size_t)256 << 10)
#define ENTRIES_MAX 128

struct entry {
    const char *key, *value, *origin;
};

/* Read once per process; later files come first, so that the first match wins. */
static struct {
    struct arena arena;
    struct entry entry[ENTRIES_MAX];
    size_t n;
    bool read;
} config;

static bool key_known(const char *key)
{
    for (int i = 0; cmds[i] != NULL; i++)
        if (field_find(cmds[i]->fields, cmds[i]->n_fields, str_from(key)) != NULL)
            return true;
    return false;
}

/* first: index of the file's first entry; a key may stand once in a file. */
static enum err_code entry_add(const char *path, const yaml_node_t *key, const yaml_node_t *value,
                               size_t first, struct err *err)
{
    size_t line = key->start_mark.line + 1;
    if (key->type != YAML_SCALAR_NODE || value->type != YAML_SCALAR_NODE)
        return err_raise(err, ERR_CONFIG, "%s:%zu: wanted 'option: value'", path, line);
    const char *name = str_z(&config.arena, str_from((const char *)key->data.scalar.value));
    if (!key_known(name)) {
        err_raise(err, ERR_CONFIG, "%s:%zu: unknown option '%s'", path, line, name);
        return err_hint(err, "'cuda-agent config show' lists the options");
    }
    for (size_t i = first; i < config.n; i++)
        if (strcmp(config.entry[i].key, name) == 0)
            return err_raise(err, ERR_CONFIG, "%s:%zu: '%s' is given twice", path, line, name);
    if (config.n == ENTRIES_MAX)
        return err_raise(err, ERR_LIMIT, "%s: more than %d options", path, ENTRIES_MAX);
    config.entry[config.n++] =
        (struct entry){ name,
                        str_z(&config.arena, str_from((const char *)value->data.scalar.value)),
                        arena_fmt(&config.arena, "%s:%zu", path, line) };
    return OK;
}

static enum err_code document_read(const char *path, yaml_document_t *doc, struct err *err)
{
    const yaml_node_t *root = yaml_document_get_root_node(doc);
    if (root == NULL)
        return OK; /* an empty file */
    if (root->type != YAML_MAPPING_NODE)
        return err_raise(err, ERR_CONFIG, "%s: wanted lines of 'option: value'", path);
    size_t first = config.n;
    for (yaml_node_pair_t *p = root->data.mapping.pairs.start; p < root->data.mapping.pairs.top;
         p++)
        if (entry_add(path, yaml_document_get_node(doc, p->key),
                      yaml_document_get_node(doc, p->value), first, err) != OK)
            return err->code;
    return OK;
}

static enum err_code file_load(const char *path, struct err *err)
{
    struct str text;
    yaml_parser_t parser;
    yaml_document_t doc;
    if (file_read(&config.arena, path, FILE_MAX, &text, err) != OK)
        return err->code;
    if (!yaml_parser_initialize(&parser))
        return err_raise(err, ERR_SYSTEM, "start the YAML parser");
    yaml_parser_set_input_string(&parser, (const unsigned char *)text.ptr, text.len);
    enum err_code code = OK;
    if (!yaml_parser_load(&parser, &doc)) {
        code = err_raise(err, ERR_CONFIG, "%s:%zu: %s", path, parser.problem_mark.line + 1,
                         parser.problem ? parser.problem : "not YAML");
    } else {
        code = document_read(path, &doc, err);
        yaml_document_delete(&doc);
    }
    yaml_parser_delete(&parser);
    return code;
}

/* cuda-agent.yaml in the working directory or the nearest folder above it. */
static const char *project_file(void)
{
    const char *dir = path_absolute(&config.arena, ".");
    char *at = (char *)(uintptr_t)str_z(&config.arena, str_from(dir));
    for (;;) {
        const char *path = path_join(&config.arena, at[0] ? at : "/", "cuda-agent.yaml");
        if (path_exists(path))
            return path;
        char *slash = strrchr(at, '/');
        if (slash == NULL)
            return NULL;
        *slash = '\0';
    }
}

static enum err_code read_all(struct err *err)
{
    if (config.read)
        return OK;
    const char *project = project_file(), *home = getenv("HOME");
    if (project != NULL && file_load(project, err) != OK)
        return err->code;
    const char *user =
        home ? path_join(&config.arena, home, ".config/cuda-agent/config.yaml") : NULL;
    if (user != NULL && path_exists(user) && file_load(user, err) != OK)
        return err->code;
    config.read = true;
    return OK;
}

enum err_code config_origin(const struct field *f, const char **ret_origin, const char **ret_value,
                            struct err *err)
{
    if (read_all(err) != OK)
        return err->code;
    char *name = (char *)(uintptr_t)arena_fmt(&config.arena, "CUDA_AGENT_%s", f->name);
    for (char *c = name; *c != '\0'; c++)
        *c = *c == '-' ? '_' : (char)toupper((unsigned char)*c);
    *ret_origin = "default";
    *ret_value = getenv(name);
    if (*ret_value != NULL) {
        *ret_origin = name;
        return OK;
    }
    for (size_t i = 0; i < config.n; i++)
        if (field_find(f, 1, str_from(config.entry[i].key)) != NULL) {
            *ret_origin = config.entry[i].origin;
            *ret_value = config.entry[i].value;
            return OK;
        }
    return OK;
}

enum err_code config_apply(const struct cmd *cmd, struct err *err)
{
    for (size_t i = 0; i < cmd->n_fields; i++) {
        const char *origin, *value;
        if (config_origin(&cmd->fields[i], &origin, &value, err) != OK)
            return err->code;
        if (value != NULL && field_set(&cmd->fields[i], str_from(value), err) != OK) {
            err->code = ERR_CONFIG;
            return err_within(err, "%s", origin);
        }
    }
    return OK;
}
