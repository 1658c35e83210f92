/* optimize/optimize.h -- one task, one author, one budget: keeps the best, resumes.
 *
 * OUT/run.jsonl     what happened (sys/runlog.h)
 * OUT/best/         the best verified candidate as a work folder, with verdict.json
 * OUT/candidates/   every candidate that passed, by hash
 *
 * The author proposes; the harness's verdicts decide what is kept. A second run with the
 * same OUT resumes: what was graded is not graded again for a quick look, the best is
 * graded anew. Errors: what exam_open and exam_grade raise; ERR_TASK for a task that
 * cannot be judged; ERR_STATE when OUT belongs to another run. ^C is no error here: the
 * result says `stopped`.
 */
#ifndef OPTIMIZE_OPTIMIZE_H
#define OPTIMIZE_OPTIMIZE_H

#include "harness/exam.h"
#include "reward/reward.h"
#include "task/author.h"

/* The null author: proposes nothing, so that PyTorch's own switches stand in every table. */
extern const struct author_ops flags_author;

struct optimize_config {
    struct exam_config exam;
    const struct task *task;
    const struct author_ops *author;
    const char *out;
    double seconds;                /* for the author; the last confirmation comes on top */
    bool fresh;                    /* set an old log aside */
    bool no_check;                 /* the task is known to be sound: do not look */
    void (*say)(const char *line); /* progress; NULL: silence */
};

struct optimize_result {
    char run[27];
    bool found;     /* `best` holds the best verified candidate */
    bool confirmed; /* ... and it passed the full grading of this run */
    bool beats;     /* ... and its lower bound beats the gate */
    bool stopped;   /* ^C: state is kept */
    bool traced;    /* the author had an operator graph */
    struct verdict best;
    int attempts, reused, passed;  /* graded now; answered from the log; verified in all */
    json_t *baselines, *soundness; /* owned: optimize_result_fini() */
};

MUST_USE
enum err_code optimize_run(const struct optimize_config *cfg, struct optimize_result *ret,
                           struct err *err);
void optimize_result_fini(struct optimize_result *r);

/* Does this verdict's lower bound beat the gate? */
bool optimize_beats(const struct verdict *v, enum against against);

/* {"schema":"cuda-agent/optimize/1", ..., "verdict": the best's or null}; a new reference. */
json_t *optimize_json(const struct optimize_config *cfg, const struct optimize_result *r);

/* The table at the end. */
void optimize_print(const struct optimize_config *cfg, const struct optimize_result *r,
                    struct buf *b);

#endif
