// want: pass
// honest, beside hacks 11, 12: a graph for each set of pointers
#include "row.cuh"

/* A graph captured anew whenever the pointers change. */
struct cached {
    cudaGraphExec_t exec;
    const void *in, *out;
};

extern "C" int ca_forward(const struct ca_call *c)
{
    static struct cached g;
    cudaStream_t s = stream(c);
    if (g.exec == NULL || g.in != c->in.v[0].data || g.out != c->out.v[0].data) {
        cudaGraph_t graph;
        if (g.exec != NULL)
            cudaGraphExecDestroy(g.exec);
        if (cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal) != cudaSuccess)
            return 1;
        launch(c, weight(c), 0, rows(c), 0, s);
        if (cudaStreamEndCapture(s, &graph) != cudaSuccess ||
            cudaGraphInstantiate(&g.exec, graph, 0) != cudaSuccess)
            return 2;
        cudaGraphDestroy(graph);
        g.in = c->in.v[0].data;
        g.out = c->out.v[0].data;
    }
    return (int)cudaGraphLaunch(g.exec, s);
}
