/* What a row says about itself: to models in three shapes, to people as a table. */
#include "tools/tool.h"

static json_t *object_schema(const struct tool_param *p, size_t n);

static void range_put(json_t *s, const struct tool_param *p)
{
    static const char *const low[] = {
        [PARAM_TEXT] = "minLength", [PARAM_INT] = "minimum", [PARAM_LIST] = "minItems"
    };
    static const char *const high[] = { [PARAM_TEXT] =
                                            NULL, /* ours is of bytes, JSON's of letters */
                                        [PARAM_INT] = "maximum",
                                        [PARAM_LIST] = "maxItems" };
    if (p->min != 0)
        json_object_set_new(s, low[p->kind], json_integer(p->min));
    if (p->max > 0 && high[p->kind] != NULL)
        json_object_set_new(s, high[p->kind], json_integer(p->max));
}

static json_t *param_schema(const struct tool_param *p)
{
    static const char *const types[] = { [PARAM_TEXT] = "string",
                                         [PARAM_INT] = "integer",
                                         [PARAM_FLAG] = "boolean",
                                         [PARAM_CHOICE] = "string",
                                         [PARAM_LIST] = "array" };
    json_t *s = json_pack("{s:s, s:s}", "type", types[p->kind], "description", p->help);
    if (p->kind == PARAM_CHOICE) {
        json_t *words = json_array();
        for (size_t i = 0; p->choices[i] != NULL; i++)
            json_array_append_new(words, json_string(p->choices[i]));
        json_object_set_new(s, "enum", words);
    } else if (p->kind != PARAM_FLAG) {
        range_put(s, p);
    }
    if (p->kind == PARAM_LIST)
        json_object_set_new(s, "items", object_schema(p->item, p->n_item));
    return s;
}

static json_t *object_schema(const struct tool_param *p, size_t n)
{
    json_t *properties = json_object(), *required = json_array();
    for (size_t i = 0; i < n; i++) {
        json_object_set_new(properties, p[i].name, param_schema(&p[i]));
        if (p[i].required)
            json_array_append_new(required, json_string(p[i].name));
    }
    return json_pack("{s:s, s:o, s:o, s:b}", "type", "object", "properties", properties, "required",
                     required, "additionalProperties", 0);
}

json_t *tool_schema(const struct tool *row)
{
    return object_schema(row->param, row->n_param);
}

json_t *tool_describe(const struct tool *row, enum tool_shape shape)
{
    json_t *schema = tool_schema(row);
    switch (shape) {
    case TOOL_OPENAI:
        return json_pack("{s:s, s:{s:s, s:s, s:o}}", "type", "function", "function", "name",
                         row->name, "description", row->description, "parameters", schema);
    case TOOL_ANTHROPIC:
        return json_pack("{s:s, s:s, s:o}", "name", row->name, "description", row->description,
                         "input_schema", schema);
    case TOOL_MCP:
        return json_pack("{s:s, s:s, s:o, s:{s:b}}", "name", row->name, "description",
                         row->description, "inputSchema", schema, "annotations", "readOnlyHint",
                         (int)row->reads);
    }
    json_decref(schema);
    return NULL;
}

static void param_list(struct buf *b, const struct tool_param *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        buf_addf(b, "%s`%s`%s", i == 0 ? "" : ", ", p[i].name, p[i].required ? "" : "?");
        if (p[i].kind == PARAM_LIST) {
            buf_addz(b, " [");
            param_list(b, p[i].item, p[i].n_item);
            buf_addz(b, "]");
        }
    }
}

struct str tool_table(struct arena *a, const struct tool_set *sets, size_t n)
{
    struct buf b = { .arena = a, .max = 1 << 20 };
    buf_addz(&b, "| tool | parameters | changes |\n|---|---|---|\n");
    for (size_t s = 0; s < n; s++)
        for (size_t i = 0; i < sets[s].n; i++) {
            const struct tool *row = &sets[s].row[i];
            buf_addf(&b, "| %s | ", row->name);
            param_list(&b, row->param, row->n_param);
            buf_addf(&b, " | %s |\n", row->reads ? "nothing" : "yes");
        }
    return (struct str){ b.ptr, b.len };
}
