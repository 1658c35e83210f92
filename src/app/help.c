#include "app/help.h"

#define DISTANCE_MAX 3
#define NAME_MAX_LEN 31

/* The option as a person types it. */
static void option_name(const struct field *f, FILE *out)
{
    fputs("--", out);
    for (const char *c = f->name; *c != '\0'; c++)
        fputc(*c == '_' ? '-' : *c, out);
}

static const char *kind_text(const struct field *f)
{
    switch (f->kind) {
    case FIELD_IS_FLAG:
        return "";
    case FIELD_IS_INT:
    case FIELD_IS_REAL:
        return " N";
    case FIELD_IS_TEXT:
        return " TEXT";
    case FIELD_IS_CHOICE:
        return " CHOICE";
    }
    return "";
}

static void default_text(const struct field *f, FILE *out)
{
    switch (f->kind) {
    case FIELD_IS_FLAG:
        break;
    case FIELD_IS_INT:
        fprintf(out, " [%lld]", (long long)*f->to.integer);
        break;
    case FIELD_IS_REAL:
        fprintf(out, " [%g]", *f->to.real);
        break;
    case FIELD_IS_TEXT:
        if (f->to.text->len > 0)
            fprintf(out, " [%.*s]", STR_FMT(*f->to.text));
        break;
    case FIELD_IS_CHOICE:
        fputs(" (", out);
        for (int i = 0; f->choices[i] != NULL; i++)
            fprintf(out, "%s%s", i ? ", " : "", f->choices[i]);
        fprintf(out, ") [%s]", f->choices[*f->to.choice]);
        break;
    }
}

void help_all(FILE *out)
{
    fputs("cuda-agent: faster kernels for PyTorch models, checked where cheating is impossible\n\n"
          "usage: cuda-agent COMMAND [options]\n\n",
          out);
    for (int i = 0; cmds[i] != NULL; i++)
        fprintf(out, "  %-10s %-14s %s\n", cmds[i]->name, cmds[i]->operands, cmds[i]->summary);
    fputs("\n'cuda-agent COMMAND --help' tells the options. Exit status: 0 success, 1 a verdict "
          "that is\n"
          "no pass, 2 usage, 3 configuration, 4 system, 5 format, 6 limit, 7 state, 8 time-out, 9 "
          "device,\n"
          "10 task, 11 something is missing here, 12 worker, 130 interrupted.\n",
          out);
}

void help_command(const struct cmd *cmd, FILE *out)
{
    fprintf(out, "usage: cuda-agent %s %s [options]\n\n%s\n", cmd->name, cmd->operands,
            cmd->summary);
    if (cmd->details != NULL)
        fprintf(out, "\n%s\n", cmd->details);
    if (cmd->n_fields > 0)
        fputs("\noptions:\n", out);
    for (size_t i = 0; i < cmd->n_fields; i++) {
        fputs("  ", out);
        option_name(&cmd->fields[i], out);
        fprintf(out, "%s\n      %s", kind_text(&cmd->fields[i]), cmd->fields[i].help);
        default_text(&cmd->fields[i], out);
        fputc('\n', out);
    }
}

void help_markdown(FILE *out)
{
    fputs("# Commands\n\nWritten by `cuda-agent help --format markdown` from the command table; do "
          "not edit.\n",
          out);
    for (int i = 0; cmds[i] != NULL; i++) {
        fprintf(out, "\n## cuda-agent %s\n\n```\n", cmds[i]->name);
        help_command(cmds[i], out);
        fputs("```\n", out);
    }
}

void help_bash(FILE *out)
{
    fputs("# bash completion for cuda-agent: source this file\n_cuda_agent()\n{\n"
          "    local cur=${COMP_WORDS[COMP_CWORD]}\n    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
          "        COMPREPLY=($(compgen -W \"",
          out);
    for (int i = 0; cmds[i] != NULL; i++)
        fprintf(out, "%s%s", i ? " " : "", cmds[i]->name);
    fputs("\" -- \"$cur\"))\n        return\n    fi\n    case ${COMP_WORDS[1]} in\n", out);
    for (int i = 0; cmds[i] != NULL; i++) {
        fprintf(out, "    %s) COMPREPLY=($(compgen -f -W \"", cmds[i]->name);
        for (size_t k = 0; k < cmds[i]->n_fields; k++) {
            fputs(k ? " " : "", out);
            option_name(&cmds[i]->fields[k], out);
        }
        fputs("\" -- \"$cur\")) ;;\n", out);
    }
    fputs("    esac\n}\ncomplete -F _cuda_agent cuda-agent\n", out);
}

void help_man(FILE *out)
{
    fputs(".TH CUDA-AGENT 1\n.SH NAME\ncuda-agent \\- faster kernels for PyTorch models, checked\n"
          ".SH SYNOPSIS\n.B cuda-agent\n.I COMMAND\n[options]\n.SH COMMANDS\n",
          out);
    for (int i = 0; cmds[i] != NULL; i++) {
        fprintf(out, ".SS %s %s\n%s\n", cmds[i]->name, cmds[i]->operands, cmds[i]->summary);
        for (size_t k = 0; k < cmds[i]->n_fields; k++) {
            fputs(".TP\n.B ", out);
            option_name(&cmds[i]->fields[k], out);
            fprintf(out, "\n%s", cmds[i]->fields[k].help);
            default_text(&cmds[i]->fields[k], out);
            fputc('\n', out);
        }
    }
}

/* Levenshtein distance of two short names. */
static size_t distance(const char *a, const char *b)
{
    size_t row[NAME_MAX_LEN + 1], n = strlen(b), m = strlen(a);
    if (n > NAME_MAX_LEN || m > NAME_MAX_LEN)
        return NAME_MAX_LEN;
    for (size_t j = 0; j <= n; j++)
        row[j] = j;
    for (size_t i = 1; i <= m; i++) {
        size_t corner = row[0];
        row[0] = i;
        for (size_t j = 1; j <= n; j++) {
            size_t best = corner + (a[i - 1] != b[j - 1]);
            best = row[j] + 1 < best ? row[j] + 1 : best;
            best = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
            corner = row[j];
            row[j] = best;
        }
    }
    return row[n];
}

const char *help_nearest(const char *name)
{
    const char *best = NULL;
    size_t least = DISTANCE_MAX + 1;
    for (int i = 0; cmds[i] != NULL; i++) {
        size_t d = distance(name, cmds[i]->name);
        if (d < least) {
            least = d;
            best = cmds[i]->name;
        }
    }
    return best;
}
