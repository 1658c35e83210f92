/* CUDA C: a thread for a pack of neighbours, a warp or a block for a row. */
#include <stdio.h>

#include "playbook/emit.h"
#include "playbook/knobs.h"

#define WARP 32
#define COLUMN_WARPS 8 /* of a block that reduces columns */
#define HELD_MAX 64    /* values of a row that one thread may hold in registers */
#define BIG ((int64_t)1 << 30)

struct writer {
    struct arena *arena;
    struct buf *out;
    const struct plan *plan;
    const struct knobs *knobs;
};

static const char *out_type(const struct writer *w, const struct kernel *k)
{
    return emit_c_type(true, w->plan->buffer[k->buffer].dtype_name);
}

static void signature(struct writer *w, const struct emit *e, const char *name, int threads)
{
    buf_addf(w->out, "static __global__ void __launch_bounds__(%d)\n%s(%s *__restrict__ out",
             threads, name, out_type(w, e->kernel));
    for (int i = 0; i < e->kernel->n_more; i++)
        buf_addf(w->out, ", %s *__restrict__ out%d",
                 emit_c_type(true, w->plan->buffer[e->kernel->more_buffer[i]].dtype_name), i + 1);
    for (int i = 0; i < e->n_args; i++)
        buf_addf(w->out, ", const %s *__restrict__ %s", e->arg[i].c_type, e->arg[i].name);
    buf_addz(w->out, ")\n{\n");
}

/* As many neighbours as divide the columns and make at most 16 bytes of the widest type... of
 * 16-bit tensors, 8; of others, knobs.vec. */
static int vec_of(const struct writer *w, const struct kernel *k)
{
    bool half = w->plan->buffer[k->buffer].dtype == GRAPH_F16 ||
                w->plan->buffer[k->buffer].dtype == GRAPH_BF16;
    int vec = half ? 2 * w->knobs->vec : w->knobs->vec;
    while (vec > 1 && k->cols % vec != 0)
        vec /= 2;
    return vec;
}

static const char *index_type(const struct kernel *k)
{
    return k->rows * k->cols < BIG ? "int" : "long long";
}

static void pack_loads(struct writer *w, const struct emit *e, const char *element)
{
    for (int i = 0; i < e->n_packs; i++) {
        const struct emit_arg *a = &e->arg[e->pack[i].arg];
        buf_addf(w->out, "%s%s = *(const pack<%s, %d> *)(%s + %s);\n",
                 element ? "" : arena_fmt(w->arena, "const pack<%s, %d> ", a->c_type, e->vec),
                 element ? arena_fmt(w->arena, "%s%s", e->pack[i].name, element) : e->pack[i].name,
                 a->c_type, e->vec, a->name, e->pack[i].offset);
    }
}

static void text(struct writer *w, const struct buf *b, size_t from, size_t to)
{
    buf_add(w->out, (struct str){ b->ptr + from, to - from });
}

/* The offset of the first neighbour: without the lane. */
static const char *out_base(struct writer *w, struct emit *e)
{
    const struct affine *x = emit_out_offset(e);
    if (e->vec > 1)
        x = affine_add(w->arena, x,
                       affine_scale(w->arena, affine_var(w->arena, "k", e->vec - 1), -1));
    return affine_text(w->arena, x);
}

static void write_lanes(struct writer *w, struct emit *e, const char *value, const char *body,
                        size_t n)
{
    const char *type = out_type(w, e->kernel);
    value = emit_store(e, w->plan->buffer[e->kernel->buffer].dtype, value);
    if (e->vec == 1) {
        buf_add(w->out, (struct str){ body, n });
        buf_addf(w->out, "out[%s] = %s;\n", out_base(w, e), value);
        return;
    }
    buf_addf(w->out, "pack<%s, %d> y;\n#pragma unroll\nfor (int k = 0; k < %d; k++) {\n", type,
             e->vec, e->vec);
    buf_add(w->out, (struct str){ body, n });
    buf_addf(w->out, "y.v[k] = %s;\n}\n*(pack<%s, %d> *)(out + %s) = y;\n", value, type, e->vec,
             out_base(w, e));
}

static void pointwise(struct writer *w, const struct kernel *k, const char *name)
{
    struct emit e;
    emit_init(&e, w->arena, w->plan, k, true, vec_of(w, k));
    const char *value = emit_sink(&e, 0), *type = index_type(k);
    signature(w, &e, name, w->knobs->block);
    buf_addf(w->out,
             "#pragma unroll\nfor (int u = 0; u < %d; u++) {\n"
             "const %s first = ((blockIdx.x * (%s)%d + u) * %d + threadIdx.x) * %d;\nif (first >= "
             "%lld)\nreturn;\n",
             w->knobs->unroll, type, type, w->knobs->unroll, w->knobs->block, e.vec,
             (long long)(k->rows * k->cols));
    if (k->rows > 1)
        buf_addf(w->out, "const %s row = first / %lld, c = first %% %lld;\n", type,
                 (long long)k->cols, (long long)k->cols);
    else
        buf_addf(w->out, "const %s c = first;\n", type);
    text(w, &e.outer, 0, e.outer.len);
    pack_loads(w, &e, NULL);
    write_lanes(w, &e, value, e.body.ptr, e.body.len);
    buf_addz(w->out, "}\n}\n\n");
}

/* ---- rows with reductions ---- */

struct row_shape {
    int threads, vec, held; /* threads of a row; packs that one thread holds, 0: reload them */
};

static struct row_shape row_shape(const struct writer *w, const struct kernel *k)
{
    struct row_shape s = { .threads = WARP, .vec = vec_of(w, k) };
    int64_t packs = k->cols / s.vec;
    while (s.threads < 1024 && (int64_t)s.threads * w->knobs->per_thread < packs)
        s.threads *= 2;
    int64_t held = (packs + s.threads - 1) / s.threads;
    s.held = held * s.vec <= HELD_MAX ? (int)held : 0;
    return s;
}

struct stage_text {
    size_t outer_from, outer_to;
    const char *body;
    size_t n;
    const char *value;
};

/* The loop over this thread's part of the row. */
static void loop_open(struct writer *w, const struct emit *e, const struct row_shape *s)
{
    if (s->held > 0)
        buf_addf(w->out,
                 "#pragma unroll\nfor (int i = 0; i < %d; i++) {\nconst int c = (i * %d + lane) * "
                 "%d;\nif (c < %lld) {\n",
                 s->held, s->threads, s->vec, (long long)e->kernel->cols);
    else
        buf_addf(w->out, "#pragma unroll %d\nfor (int c = lane * %d; c < %lld; c += %d) {\n{\n",
                 w->knobs->unroll, s->vec, (long long)e->kernel->cols, s->threads * s->vec);
    if (s->held == 0)
        pack_loads(w, e, NULL);
}

static void prologue(struct writer *w, const struct emit *e, const struct row_shape *s)
{
    if (s->held == 0)
        return;
    for (int i = 0; i < e->n_cached; i++)
        buf_addf(w->out, "float e%d[%d][%d];\n", i, s->held, s->vec);
    for (int i = 0; i < e->n_packs; i++)
        buf_addf(w->out, "pack<%s, %d> %s[%d];\n", e->arg[e->pack[i].arg].c_type, e->vec,
                 e->pack[i].name, s->held);
    if (e->n_packs == 0)
        return;
    loop_open(w, e, s);
    pack_loads(w, e, "[i]");
    buf_addz(w->out, "}\n}\n");
}

static void stage(struct writer *w, const struct emit *e, const struct row_shape *s, int i,
                  const struct stage_text *t)
{
    static const char *const combine[] = { "row_sum", "row_max", "row_min" };
    enum reduce_kind r = w->plan->p->term[e->stage_term[i]].reduce;
    buf_addf(w->out, "float s%d = %s;\n", i, emit_reduce_init(r));
    loop_open(w, e, s);
    buf_addf(w->out, "#pragma unroll\nfor (int k = 0; k < %d; k++) {\n", s->vec);
    buf_add(w->out, (struct str){ t->body, t->n });
    if (r == REDUCE_SUM)
        buf_addf(w->out, "s%d += %s;\n", i, t->value);
    else
        buf_addf(w->out, "s%d = %s(s%d, %s);\n", i, r == REDUCE_MAX ? "fmaxf" : "fminf", i,
                 t->value);
    buf_addf(w->out, "}\n}\n}\ns%d = %s<%d>(s%d);\n", i, combine[r], s->threads, i);
}

static void store_rows(struct writer *w, struct emit *e, const char *value)
{
    const struct kernel *k = e->kernel;
    const char *more[SINKS_MORE], *at = affine_text(w->arena, emit_out_offset(e));
    size_t from = e->outer.len;
    for (int i = 0; i < k->n_more; i++)
        more[i] = emit_sink(e, i + 1);
    text(w, &e->outer, from, e->outer.len);
    buf_addf(w->out, "if (lane == 0) {\nout[%s] = %s;\n", at,
             emit_store(e, w->plan->buffer[k->buffer].dtype, value));
    for (int i = 0; i < k->n_more; i++)
        buf_addf(w->out, "out%d[%s] = %s;\n", i + 1, at,
                 emit_store(e, w->plan->buffer[k->more_buffer[i]].dtype, more[i]));
    buf_addz(w->out, "}\n");
}

static void rows(struct writer *w, const struct kernel *k, const char *name)
{
    struct emit e;
    struct row_shape s = row_shape(w, k);
    struct stage_text all[EMIT_STAGES_MAX + 1];
    emit_init(&e, w->arena, w->plan, k, true, s.vec);
    e.cache_at = s.held > 0 ? "[i][k]" : NULL;
    size_t from = 0;
    for (int i = 0; i <= e.n_stages; i++) {
        all[i].value = i < e.n_stages ? emit_stage(&e, i) : emit_sink(&e, 0);
        all[i].body = str_z(w->arena, (struct str){ e.body.ptr, e.body.len });
        all[i].n = e.body.len;
        all[i].outer_from = from;
        all[i].outer_to = from = e.outer.len;
        if (i < e.n_stages)
            emit_stage_done(&e);
    }
    int rows_a_block = s.threads == WARP ? w->knobs->rows : 1;
    signature(w, &e, name, s.threads * rows_a_block);
    buf_addf(w->out,
             "const int lane = threadIdx.x;\nconst %s row = blockIdx.x * (%s)%d + threadIdx.y;\n",
             index_type(k), index_type(k), rows_a_block);
    if (rows_a_block > 1) /* uniform over a warp: the shuffles see all lanes */
        buf_addf(w->out, "if (row >= %lld)\nreturn;\n", (long long)k->rows);
    text(w, &e.outer, all[0].outer_from, all[0].outer_to);
    prologue(w, &e, &s);
    for (int i = 0; i <= e.n_stages; i++) {
        if (i > 0)
            text(w, &e.outer, all[i].outer_from, all[i].outer_to);
        if (i < e.n_stages)
            stage(w, &e, &s, i, &all[i]);
    }
    const struct stage_text *last = &all[e.n_stages];
    if (k->row_only) {
        store_rows(w, &e, last->value);
    } else {
        loop_open(w, &e, &s);
        write_lanes(w, &e, last->value, last->body, last->n);
        buf_addz(w->out, "}\n}\n");
    }
    buf_addz(w->out, "}\n\n");
}

/* The reduced dimension is the one whose neighbours lie together: a warp takes a column. */
static void columns_along(struct writer *w, const struct kernel *k, struct emit *e,
                          const char *value)
{
    static const char *const combine[] = { "row_sum", "row_max", "row_min" };
    enum reduce_kind r = w->plan->p->term[k->sink].reduce;
    buf_addf(w->out,
             "const long long o = blockIdx.y, c = blockIdx.x * %dLL + threadIdx.y;\n"
             "if (c >= %lld)\nreturn;\nfloat sum = %s;\n#pragma unroll 4\n"
             "for (long long r = threadIdx.x; r < %lld; r += 32) {\n",
             COLUMN_WARPS, (long long)k->inner, emit_reduce_init(r), (long long)k->red);
    text(w, &e->outer, 0, e->outer.len);
    text(w, &e->body, 0, e->body.len);
    if (r == REDUCE_SUM)
        buf_addf(w->out, "sum += %s;\n}\n", value);
    else
        buf_addf(w->out, "sum = %s(sum, %s);\n}\n", r == REDUCE_MAX ? "fmaxf" : "fminf", value);
    buf_addf(w->out, "sum = %s<32>(sum);\nif (threadIdx.x == 0)\nout[o * %lld + c] = %s;\n}\n\n",
             combine[r], (long long)k->inner,
             emit_store(e, w->plan->buffer[k->buffer].dtype, "sum"));
}

static void columns(struct writer *w, const struct kernel *k, const char *name)
{
    struct emit e;
    emit_init(&e, w->arena, w->plan, k, true, 1);
    enum reduce_kind r = w->plan->p->term[k->sink].reduce;
    const char *value = emit_stage(&e, 0);
    signature(w, &e, name, 256);
    if (e.along_red > e.along_col) {
        columns_along(w, k, &e, value);
        return;
    }
    buf_addf(
        w->out,
        "__shared__ float part[8][33];\nconst long long o = blockIdx.y, c = blockIdx.x * 32LL + "
        "threadIdx.x;\n"
        "float sum = %s;\nif (c < %lld)\nfor (long long r = threadIdx.y; r < %lld; r += 8) {\n",
        emit_reduce_init(r), (long long)k->inner, (long long)k->red);
    text(w, &e.outer, 0, e.outer.len);
    text(w, &e.body, 0, e.body.len);
    const char *join = r == REDUCE_SUM   ? "sum + %s"
                       : r == REDUCE_MAX ? "fmaxf(sum, %s)"
                                         : "fminf(sum, %s)";
    struct str left = str_from(join), head;
    if (!str_cut(&left, '%', &head))
        return;
    left = str_drop(left, 1);
    buf_addf(w->out,
             "sum = %.*s%s%.*s;\n}\npart[threadIdx.y][threadIdx.x] = sum;\n__syncthreads();\n",
             STR_FMT(head), value, STR_FMT(left));
    buf_addf(w->out,
             "if (threadIdx.y == 0 && c < %lld) {\nfor (int i = 1; i < 8; i++)\nsum = "
             "%.*spart[i][threadIdx.x]%.*s;\n"
             "out[o * %lld + c] = %s;\n}\n}\n\n",
             (long long)k->inner, STR_FMT(head), STR_FMT(left), (long long)k->inner,
             emit_store(&e, w->plan->buffer[k->buffer].dtype, "sum"));
}

/* ---- the host's side ---- */

static void arguments(struct writer *w, struct emit *e, const struct kernel *k)
{
    buf_addf(w->out, "(%s", template_out_pointer(w->arena, w->plan, k->buffer, out_type(w, k)));
    for (int i = 0; i < k->n_more; i++)
        buf_addf(
            w->out, ", %s",
            template_out_pointer(w->arena, w->plan, k->more_buffer[i],
                                 emit_c_type(true, w->plan->buffer[k->more_buffer[i]].dtype_name)));
    for (int i = 0; i < e->n_args; i++)
        buf_addf(w->out, ", %s",
                 template_pointer(w->arena, w->plan, e->arg[i].leaf, e->arg[i].c_type));
    buf_addz(w->out, ");\n");
}

static void launch(struct writer *w, const struct kernel *k, int index)
{
    struct emit e;
    struct row_shape s = row_shape(w, k);
    emit_init(&e, w->arena, w->plan, k, true, k->kind == KERNEL_COLUMNS ? 1 : s.vec);
    for (int i = 0; i < e.n_stages; i++) {
        emit_stage(&e, i);
        emit_stage_done(&e);
    }
    if (k->kind == KERNEL_COLUMNS)
        emit_stage(&e, 0);
    else
        for (int i = 0; i <= k->n_more; i++)
            emit_sink(&e, i);
    const char *name = template_name(w->arena, k, index);
    if (k->kind == KERNEL_COLUMNS) {
        int per = e.along_red > e.along_col ? COLUMN_WARPS : WARP;
        buf_addf(w->out, "%s<<<dim3(%lld, %lld), dim3(32, %d), 0, stream>>>", name,
                 (long long)((k->inner + per - 1) / per), (long long)k->outer, COLUMN_WARPS);
    } else if (e.n_stages == 0) {
        int64_t per_block = (int64_t)w->knobs->block * w->knobs->unroll * vec_of(w, k);
        buf_addf(w->out, "%s<<<%lld, %d, 0, stream>>>", name,
                 (long long)((k->rows * k->cols + per_block - 1) / per_block), w->knobs->block);
    } else {
        int per = s.threads == WARP ? w->knobs->rows : 1;
        buf_addf(w->out, "%s<<<%lld, dim3(%d, %d), 0, stream>>>", name,
                 (long long)((k->rows + per - 1) / per), s.threads, per);
    }
    arguments(w, &e, k);
}

static const char *cublas_type(enum graph_dtype d)
{
    return d == GRAPH_F16 ? "CUDA_R_16F" : d == GRAPH_BF16 ? "CUDA_R_16BF" : "CUDA_R_32F";
}

/* Row-major C = A B is column-major C^T = B^T A^T: the operands change places. */
static void product(struct writer *w, const struct kernel *k)
{
    struct gemm g;
    template_gemm(w->plan, k, &g);
    enum graph_dtype type = w->plan->buffer[k->buffer].dtype;
    const char *compute =
        type == GRAPH_F32 && w->knobs->tf32 ? "CUBLAS_COMPUTE_32F_FAST_TF32" : "CUBLAS_COMPUTE_32F";
    const struct term *t = &w->plan->p->term[k->sink];
    enum graph_dtype in[2];
    for (int i = 0; i < 2; i++) {
        int64_t stride[GRAPH_RANK_MAX];
        int leaf = -1;
        in[i] = plan_strides(w->plan, t->arg[i], &leaf, stride) ? w->plan->p->term[leaf].dtype
                                                                : GRAPH_F32;
    }
    buf_addf(w->out,
             "rc = cublasGemmStridedBatchedEx(handle, %s, %s, %lld, %lld, %lld, &one, %s, %s, "
             "%lld, %lld, %s, %s, %lld, "
             "%lld, &zero, %s, %s, %lld, %lld, %lld, %s, CUBLAS_GEMM_DEFAULT);\nif (rc != "
             "CUBLAS_STATUS_SUCCESS)\nreturn (int)rc;\n",
             g.trans[1] ? "CUBLAS_OP_T" : "CUBLAS_OP_N", g.trans[0] ? "CUBLAS_OP_T" : "CUBLAS_OP_N",
             (long long)g.n, (long long)g.m, (long long)g.k,
             template_pointer(w->arena, w->plan, g.leaf[1], "void"), cublas_type(in[1]),
             (long long)g.ld[1], (long long)g.step[1],
             template_pointer(w->arena, w->plan, g.leaf[0], "void"), cublas_type(in[0]),
             (long long)g.ld[0], (long long)g.step[0],
             template_out_pointer(w->arena, w->plan, k->buffer, "void"), cublas_type(type),
             (long long)g.n, (long long)(g.m * g.n), (long long)g.batch, compute);
}

static bool has_product(const struct plan *plan)
{
    for (int i = 0; i < plan->n_kernels; i++)
        if (plan->kernel[i].kind == KERNEL_MATMUL)
            return true;
    return false;
}

static void launches(struct writer *w, bool setup)
{
    bool any = false;
    for (int i = 0; i < w->plan->n_kernels; i++)
        any =
            any || (w->plan->kernel[i].kind == KERNEL_MATMUL && w->plan->kernel[i].setup == setup);
    if (any)
        buf_addz(w->out, "const float one = 1.0f, zero = 0.0f;\ncublasStatus_t rc = "
                         "cublasSetStream(handle, stream);\n"
                         "if (rc != CUBLAS_STATUS_SUCCESS)\nreturn (int)rc;\n");
    for (int i = 0; i < w->plan->n_kernels; i++) {
        const struct kernel *k = &w->plan->kernel[i];
        if (k->setup != setup)
            continue;
        if (k->kind == KERNEL_MATMUL)
            product(w, k);
        else
            launch(w, k, i);
    }
    buf_addz(w->out, "return (int)cudaGetLastError();\n}\n\n");
}

static const char helpers[] =
    "/* Neighbours that travel together. */\ntemplate <typename T, int N>\nstruct "
    "alignas(sizeof(T) * N) pack {\n    T v[N];\n};\n\n"
    "/* Over the T threads of a row: shuffles in a warp, shared memory between warps. */\n"
    "#define ROW_REDUCTION(name, start, join)                                          \\\n"
    "    template <int T>                                                              \\\n"
    "    static __device__ __forceinline__ float name(float x)                         \\\n"
    "    {                                                                             \\\n"
    "        for (int step = 16; step > 0; step /= 2) {                                \\\n"
    "            const float y = __shfl_xor_sync(0xffffffffu, x, step);                \\\n"
    "            x = join;                                                             \\\n"
    "        }                                                                         \\\n"
    "        if (T > 32) {                                                             \\\n"
    "            __shared__ float part[T / 32];                                        \\\n"
    "            __syncthreads();                                                      \\\n"
    "            if (threadIdx.x % 32 == 0)                                            \\\n"
    "                part[threadIdx.x / 32] = x;                                       \\\n"
    "            __syncthreads();                                                      \\\n"
    "            x = start;                                                            \\\n"
    "            for (int i = 0; i < T / 32; i++) {                                    \\\n"
    "                const float y = part[i];                                          \\\n"
    "                x = join;                                                         \\\n"
    "            }                                                                     \\\n"
    "        }                                                                         \\\n"
    "        return x;                                                                 \\\n"
    "    }\n"
    "ROW_REDUCTION(row_sum, 0.0f, x + y)\nROW_REDUCTION(row_max, -INFINITY, fmaxf(x, y))\n"
    "ROW_REDUCTION(row_min, INFINITY, fminf(x, y))\n\n";

static void includes(struct buf *b, const struct plan *plan)
{
    bool half = false, bf16 = false;
    for (int i = 0; i < plan->p->graph->n_values; i++) {
        half = half || plan->p->graph->value[i].dtype == GRAPH_F16;
        bf16 = bf16 || plan->p->graph->value[i].dtype == GRAPH_BF16;
    }
    buf_addz(b, "#include <cuda_runtime.h>\n#include <math.h>\n");
    buf_addz(b, bf16 ? "#include <cuda_bf16.h>\n" : "");
    buf_addz(b, half ? "#include <cuda_fp16.h>\n" : "");
    buf_addz(b, has_product(plan) ? "#include <cublas_v2.h>\n\nstatic cublasHandle_t handle;\n\n"
                                  : "\n");
}

static void setup(struct writer *w)
{
    bool product = has_product(w->plan);
    if (!product && w->plan->keep_bytes == 0)
        return;
    buf_addz(w->out,
             "extern \"C\" int ca_setup(const struct ca_call *c, void **state)\n{\n"
             "cudaStream_t stream = (cudaStream_t)c->stream;\n(void)stream;\n*state = NULL;\n");
    if (product)
        buf_addz(
            w->out,
            "if (handle == NULL && cublasCreate(&handle) != CUBLAS_STATUS_SUCCESS)\nreturn 1;\n");
    launches(w, true);
}

enum err_code template_cuda(struct arena *a, const struct plan *plan, const struct knobs *k,
                            const char *task, struct str *ret, struct err *err)
{
    struct buf b = { .arena = a, .max = TEMPLATE_MAX };
    struct writer w = { a, &b, plan, k };
    template_head(&b, task, k->fast_math);
    includes(&b, plan);
    buf_addz(&b, helpers);
    for (int i = 0; i < plan->n_kernels; i++) {
        const struct kernel *kernel = &plan->kernel[i];
        struct emit e;
        if (kernel->kind == KERNEL_MATMUL)
            continue;
        template_describe(&b, plan, kernel);
        emit_init(&e, a, plan, kernel, true, 1);
        if (kernel->kind == KERNEL_COLUMNS)
            columns(&w, kernel, template_name(a, kernel, i));
        else if (e.n_stages > 0)
            rows(&w, kernel, template_name(a, kernel, i));
        else
            pointwise(&w, kernel, template_name(a, kernel, i));
    }
    template_tail(&b, plan, "extern \"C\" ");
    setup(&w);
    buf_addz(&b, "extern \"C\" int ca_forward(const struct ca_call *c)\n{\ncudaStream_t stream = "
                 "(cudaStream_t)c->stream;\n");
    launches(&w, false);
    return template_done(a, &b, ret, err);
}
