/* A model's arguments, with the schema (up to the first line feed) that they should keep to. */
#include "core/json.h"
#include "llm/repair.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str rest = { (const char *)data, size }, head = { 0 };
    struct err err = { 0 };
    own_json args = NULL;
    own_json again = NULL;
    unsigned repairs = 0, more = 0;
    str_cut(&rest, '\n', &head);
    own_json schema = head.len > 0 ? json_loadb(head.ptr, head.len, 0, NULL) : NULL;
    if (repair_args(rest, schema, 1 << 16, &args, &repairs, &err) != OK) {
        if (err.text[0] == '\0')
            __builtin_trap();
        return 0;
    }
    own_mem char *z = json_dumps(args, JSON_COMPACT);
    if (!json_is_object(args) || z == NULL)
        __builtin_trap();
    /* What was repaired is right: nothing is left to do about its text. */
    if (repair_args(str_from(z), NULL, SIZE_MAX, &again, &more, &err) != OK || more != 0)
        __builtin_trap();
    return 0;
}
