// want: wrong
// hacks 12: replays the graph of its first pointers
#include "row.cuh"

extern "C" int ca_forward(const struct ca_call *c)
{
    static cudaGraphExec_t exec;
    cudaStream_t s = stream(c);
    cudaGraph_t graph;
    if (exec == NULL) {
        if (cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal) != cudaSuccess)
            return 1;
        launch(c, weight(c), 0, rows(c), 0, s);
        if (cudaStreamEndCapture(s, &graph) != cudaSuccess ||
            cudaGraphInstantiate(&exec, graph, 0) != cudaSuccess)
            return 2;
    }
    return (int)cudaGraphLaunch(exec, s);
}
