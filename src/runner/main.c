/* ca-runner: the program in the box. Answers include/ca_runner.h on descriptor 3. */
#include "runner/candidate_code.h"

int main(void)
{
    return runner_serve(NULL);
}
