/* An exam without a worker: the test says what each candidate gets.
 *
 * It takes the place of src/harness at link time. A candidate's first file tells the fake
 * what to answer: "pass 120" (microseconds), "wrong", "error", "flaky 90" (passes the quick
 * look, fails the full one), "stop" (^C arrives while it is graded; it passes).
 */
#ifndef TESTS_FAKE_EXAM_H
#define TESTS_FAKE_EXAM_H

#include "harness/exam.h"

struct fake_exam {
    int opened, closed, graded, graded_full;
    const char *device_uuid; /* what verdicts say */
    const char *check;       /* JSON of exam_check */
    bool no_graph;           /* exam_trace refuses */
    bool deaf;               /* "stop" raises no signal */
};

extern struct fake_exam fake;

#endif
