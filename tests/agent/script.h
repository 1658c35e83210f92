/* A long episode's script: masks, a summary that fails, resets, nudges, errors of all kinds. */
#ifndef TESTS_AGENT_SCRIPT_H
#define TESTS_AGENT_SCRIPT_H

#include "tests/agent/world.h"

#define SCRIPT_TURNS 44

/* What a model may do: write, read, edit, be graded, err, be silent, work on its list. */
MAYBE_UNUSED static void script_turn(struct world *w, int k)
{
    static const char *const word[] = { "", "fast ", "fast fast ", "wrong ", "fast fast fast " };
    const char *body = arena_fmt(&w->a, "%s%0*d", word[(k / 3) % 5], 400, k);
    switch (k % 9) {
    case 0:
        says(w, "text:Anew.", "think:so be it",
             arena_fmt(&w->a, "Write {\"file_path\":\"kernels/k.cu\",\"content\":\"%s\"}", body),
             "profile {}");
        break;
    case 1:
        says(w, "Read {\"file_path\":\"kernels/k.cu\"}", "Glob {\"pattern\":\"**/k.cu\"}");
        break;
    case 2:
        says(w,
             arena_fmt(&w->a,
                       "Edit {\"file_path\":\"kernels/k.cu\",\"old_string\":\"%04d\","
                       "\"new_string\":\"%04d fast\"}",
                       k - 2, k),
             "profile {}");
        break;
    case 3:
        says(w, arena_fmt(&w->a,
                          "TodoWrite {\"todos\":[{\"content\":\"step %d\",\"status\":"
                          "\"in_progress\"}]}",
                          k));
        break;
    case 4:
        ends(w, "length", "text:I was about to");
        break;
    case 5:
        says(w,
             arena_fmt(&w->a, "Write {\"file_path\":\"notes/n%d.md\",\"content\":\"%s\"}", k, body),
             "Fly {}", "Read {\"file_path\":");
        break;
    case 6:
        says(w, "text:Am I done?");
        break;
    case 7:
        says(w, "nap {\"ms\":1}", "Read {\"file_path\":\"model.py\"}",
             "MultiEdit {\"file_path\":\"kernels/k.cu\",\"edits\":[{\"old_string\":\"0000000\","
             "\"new_string\":\"1\",\"replace_all\":true}]}");
        break;
    default:
        says(w, "Bash");
    }
}

MAYBE_UNUSED static void script_make(struct world *w)
{
    for (int k = 0; k < SCRIPT_TURNS; k++)
        script_turn(w, k);
    says(w, "submit {}");
    script_write(w);
    /* Small enough for masks, summaries and a reset. */
    w->config.budget = (struct budget){ .window = 9000, .turns = SCRIPT_TURNS + 10 };
}

#endif
