#include "agent/trace_diff.h"

#define CHANGES_MAX 800 /* its square in bytes of int is what a diff takes at most */
#define AROUND 3

struct lines {
    struct str *line;
    int n;
};

enum step { STEP_BOTH, STEP_OLD, STEP_NEW };

struct walk { /* the steps from the start of both texts to their ends */
    unsigned char *step;
    int n;
};

static struct lines lines_of(struct arena *a, struct str text)
{
    struct lines l = { 0 };
    struct str rest = text, part;
    for (size_t i = 0; i < text.len; i++)
        l.n += text.ptr[i] == '\n';
    l.line = arena_new(a, struct str, (size_t)l.n + 1);
    for (l.n = 0; str_cut(&rest, '\n', &part); l.n++)
        l.line[l.n] = part;
    return l;
}

static void step_add(struct walk *w, enum step s, int times)
{
    for (int i = 0; i < times; i++)
        w->step[w->n++] = (unsigned char)s;
}

/* Furthest x on diagonal k with d changes, out of row d - 1. */
static int furthest(const int *v, int d, int k)
{
    if (k == -d || (k != d && v[k - 1] < v[k + 1]))
        return v[k + 1];
    return v[k - 1] + 1;
}

/* The steps back from the ends, last first, by the rows that were kept. */
static void walk_back(struct arena *a, int *const *row, int d, int x, int y, struct walk *w)
{
    struct walk back = { .step = arena_new(a, unsigned char, (size_t)(x + y)) };
    for (; d >= 0; d--) {
        const int *v = row[d] + d + 1;
        int k = x - y;
        bool down = k == -d || (k != d && v[k - 1] < v[k + 1]);
        int from_k = down ? k + 1 : k - 1;
        int from_x = d == 0 ? 0 : v[from_k], from_y = d == 0 ? 0 : from_x - from_k;
        for (; x > from_x && y > from_y; x--, y--)
            step_add(&back, STEP_BOTH, 1);
        if (d > 0)
            step_add(&back, down ? STEP_NEW : STEP_OLD, 1);
        x = from_x;
        y = from_y;
    }
    for (int i = back.n; i > 0; i--)
        step_add(w, (enum step)back.step[i - 1], 1);
}

/* Myers: row[d] holds the furthest x of diagonals -d-1..d+1 before d changes were made. */
static bool walk_find(struct arena *a, struct lines p, struct lines q, struct walk *w)
{
    int **row = arena_new(a, int *, CHANGES_MAX + 2);
    row[0] = arena_new(a, int, 3);
    for (int d = 0; d <= CHANGES_MAX; d++) {
        const int *v = row[d] + d + 1;
        row[d + 1] = arena_new(a, int, (size_t)(2 * d + 5));
        int *next = row[d + 1] + d + 2;
        for (int k = -d; k <= d; k += 2) {
            int x = d == 0 ? 0 : furthest(v, d, k), y = x - k;
            while (x < p.n && y < q.n && str_eq(p.line[x], q.line[y])) {
                x++;
                y++;
            }
            next[k] = x;
            if (x >= p.n && y >= q.n) {
                walk_back(a, row, d, p.n, q.n, w);
                return true;
            }
        }
    }
    return false;
}

static void hunk_add(struct buf *b, const struct walk *w, int from, int to, struct lines p,
                     struct lines q)
{
    int x = 0, y = 0, nx = 0, ny = 0;
    for (int i = 0; i < to; i++) {
        int *old = i < from ? &x : &nx, *new = i < from ? &y : &ny;
        *old += w->step[i] != STEP_NEW;
        *new += w->step[i] != STEP_OLD;
    }
    buf_addf(b, "@@ -%d,%d +%d,%d @@\n", nx > 0 ? x + 1 : x, nx, ny > 0 ? y + 1 : y, ny);
    for (int i = from; i < to; i++) {
        struct str line = w->step[i] == STEP_NEW ? q.line[y] : p.line[x];
        buf_addz(b, w->step[i] == STEP_BOTH ? " " : w->step[i] == STEP_OLD ? "-" : "+");
        buf_add(b, line);
        buf_addz(b, "\n");
        x += w->step[i] != STEP_NEW;
        y += w->step[i] != STEP_OLD;
    }
}

static void hunks_add(struct buf *b, const struct walk *w, struct lines p, struct lines q)
{
    for (int i = 0; i < w->n; i++) {
        if (w->step[i] == STEP_BOTH)
            continue;
        int from = i > AROUND ? i - AROUND : 0, last = i;
        for (int k = i; k < w->n && k <= last + 2 * AROUND; k++)
            if (w->step[k] != STEP_BOTH)
                last = k;
        int to = last + 1 + AROUND < w->n ? last + 1 + AROUND : w->n;
        hunk_add(b, w, from, to, p, q);
        i = to - 1;
    }
}

bool diff_unified(struct str before, struct str after, struct buf *b)
{
    own_arena tmp = { 0 };
    if (str_eq(before, after))
        return false;
    struct lines p = lines_of(&tmp, before), q = lines_of(&tmp, after), mid_p, mid_q;
    struct walk w = { .step = arena_new(&tmp, unsigned char, (size_t)(p.n + q.n)) };
    int head = 0, tail = 0, least = p.n < q.n ? p.n : q.n;
    while (head < least && str_eq(p.line[head], q.line[head]))
        head++;
    while (tail < least - head && str_eq(p.line[p.n - 1 - tail], q.line[q.n - 1 - tail]))
        tail++;
    mid_p = (struct lines){ p.line + head, p.n - head - tail };
    mid_q = (struct lines){ q.line + head, q.n - head - tail };
    step_add(&w, STEP_BOTH, head);
    if (!walk_find(&tmp, mid_p, mid_q, &w)) {
        step_add(&w, STEP_OLD, mid_p.n);
        step_add(&w, STEP_NEW, mid_q.n);
    }
    step_add(&w, STEP_BOTH, tail);
    hunks_add(b, &w, p, q);
    return true;
}
