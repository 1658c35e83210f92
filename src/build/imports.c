#include "build/imports.h"

#include <elf.h>

#include "sys/file.h"

#define SO_BYTES_MAX ((size_t)512 << 20)

static const char *const prefixes[] = {
    "cuda",
    "__cuda",
    "cublas",
    "cudnn",
    "cblas_",
    "openblas_",
    "goto_",
    "dnnl_",
    "GOMP_",
    "omp_",
    "pthread_",
    "sem_",
    "_ZGV",
    "_Z",
    "__cxa_",
    "_Unwind_",
    "_ITM_",
    "__gxx_personality",
    "__gcc_personality",
    "__atomic_",
    "__emutls",
    "__tls_get_addr",
    "memc", /* not "mem": memfd_create */
    "memm",
    "memset",
    "memrchr",
    "mempcpy",
    "str",
    "__mem",
    "__str",
    "is",
    "to",
    "atomic_",
    "LAPACKE_",
};

static const char *const names[] = {
    "malloc",
    "calloc",
    "realloc",
    "free",
    "aligned_alloc",
    "posix_memalign",
    "abort",
    "exit",
    "abs",
    "labs",
    "llabs",
    "div",
    "ldiv",
    "qsort",
    "bsearch",
    "rand",
    "srand",
    "rand_r",
    "printf",
    "fprintf",
    "snprintf",
    "vsnprintf",
    "vfprintf",
    "vprintf",
    "puts",
    "putchar",
    "fputs",
    "fputc",
    "fwrite",
    "fflush",
    "perror",
    "stdout",
    "stderr",
    "__printf_chk",
    "__fprintf_chk",
    "__snprintf_chk",
    "__vsnprintf_chk",
    "__vfprintf_chk",
    "__stack_chk_fail",
    "__assert_fail",
    "__gmon_start__",
    "__errno_location",
    "__ctype_b_loc",
    "__libc_start_main",
    "__cpu_model",
    "__cpu_indicator_init",
    "clock_gettime",
    "gettimeofday",
    "time",
    "sysconf",
    "sched_yield",
    "sched_getcpu",
    "sched_getaffinity",
    "nanosleep",
    "getpagesize",
    "madvise",
    "__sched_cpucount",
    "signgam",
    "__signbit",
    "__signbitf",
    "__isnan",
    "__isnanf",
    "__isinf",
    "__isinff",
    "__finite",
    "__finitef",
    "__fpclassify",
    "__fpclassifyf",
    "get_nprocs",
    "__dso_handle",
};

/* libm: with f and l at the end, and __NAME_finite of -ffast-math. */
static const char *const math[] = {
    "acos",   "acosh",    "asin",  "asinh",     "atan",      "atan2",     "atanh", "cbrt",
    "ceil",   "copysign", "cos",   "cosh",      "erf",       "erfc",      "exp",   "exp2",
    "exp10",  "expm1",    "fabs",  "fdim",      "floor",     "fma",       "fmax",  "fmin",
    "fmod",   "frexp",    "hypot", "ilogb",     "j0",        "j1",        "jn",    "ldexp",
    "lgamma", "log",      "log10", "log1p",     "log2",      "logb",      "lrint", "lround",
    "llrint", "llround",  "modf",  "nan",       "nearbyint", "nextafter", "pow",   "remainder",
    "remquo", "rint",     "round", "roundeven", "scalbln",   "scalbn",    "sin",   "sincos",
    "sinh",   "sqrt",     "tan",   "tanh",      "tgamma",    "trunc",     "y0",    "y1",
    "yn",
};

static const char *const libraries[] = {
    "libm.so",      "libc.so",        "libgomp.so",         "libpthread.so",       "libmvec.so",
    "libstdc++.so", "libgcc_s.so",    "ld-linux-x86-64.so", "ld-linux-aarch64.so", "libcudart.so",
    "libcublas.so", "libcublasLt.so", "libcudnn",           "libopenblas.so",      "libdnnl.so",
    "libatomic.so",
};

static bool math_name(struct str s)
{
    if (str_starts(s, S("__")) && str_ends(s, S("_finite")))
        s = (struct str){ s.ptr + 2, s.len - 9 };
    if (str_ends(s, S("_r")))
        s.len -= 2; /* lgamma_r */
    for (int cut = 0; cut < 2; cut++) {
        for (size_t i = 0; i < COUNT(math); i++)
            if (str_eq(s, str_from(math[i])))
                return true;
        if (s.len == 0 || (s.ptr[s.len - 1] != 'f' && s.ptr[s.len - 1] != 'l'))
            return false;
        s.len--;
    }
    return false;
}

bool import_allowed(const char *symbol)
{
    struct str s = str_from(symbol);
    for (size_t i = 0; i < COUNT(prefixes); i++)
        if (str_starts(s, str_from(prefixes[i])))
            return true;
    for (size_t i = 0; i < COUNT(names); i++)
        if (str_eq(s, str_from(names[i])))
            return true;
    return math_name(s);
}

/* A mangled name: the identifiers of its nested name, as "at::cuda::getCurrentCUDAStream". */
static struct str nested_name(struct str s, char *room, size_t bytes)
{
    size_t n = 0;
    for (size_t i = 2; i < s.len;) {
        size_t len = 0, digits = i;
        while (digits < s.len && s.ptr[digits] >= '0' && s.ptr[digits] <= '9' && len < 4096)
            len = len * 10 + (size_t)(s.ptr[digits++] - '0');
        if (digits == i) { /* N, K, St and the like before the first, anything else ends it */
            if (n > 0)
                break;
            i++;
            continue;
        }
        if (len > s.len - digits || n + len + 2 >= bytes)
            break;
        memcpy(room + n, s.ptr + digits, len);
        memcpy(room + n + len, "::", 2);
        n += len + 2;
        i = digits + len;
    }
    return (struct str){ room, n };
}

/* PyTorch's operators that are memory and nothing else; py/forkserver/operators.py takes away the
 * others where they run. */
static bool memory_operator(struct str name)
{
    static const char *const heads[] = {
        "empty",
        "new_empty",
        "zeros",
        "new_zeros",
        "ones",
        "new_ones",
        "full",
        "new_full",
        "fill_",
        "zero_",
        "view",
        "reshape",
        "_reshape",
        "as_strided",
        "expand",
        "permute",
        "transpose",
        "t::",
        "select",
        "slice",
        "narrow",
        "squeeze",
        "unsqueeze",
        "unbind",
        "split",
        "chunk",
        "diagonal",
        "unfold",
        "flatten",
        "unflatten",
        "alias",
        "detach",
        "contiguous",
        "clone",
        "copy_",
        "_to_copy",
        "to_",
        "to::",
        "type_as",
        "item",
        "_local_scalar_dense",
        "resize_",
        "set_",
        "is_",
        "size",
        "stride",
        "numel",
        "movedim",
    };
    for (size_t i = 0; i < COUNT(heads); i++)
        if (str_starts(name, str_from(heads[i])))
            return true;
    return false;
}

static bool starts_with_one(struct str name, const char *const *heads, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (str_starts(name, str_from(heads[i])))
            return true;
    return false;
}

static bool torch_name_allowed(struct str name)
{
    static const char *const open[] = {
        "at::Tensor",         "at::detail::",     "at::internal::",     "at::globalContext",
        "at::Context::",      "at::get_",         "at::in_parallel",    "at::set_num_threads",
        "at::cuda::get",      "at::cuda::warp",   "at::cuda::is_",      "at::cuda::device_count",
        "at::cuda::Stream",   "at::cuda::CUDA",   "at::cuda::detail::", "at::cuda::can",
        "at::OptionalTensor", "at::indexing::",   "at::impl::",         "at::init_num_threads",
        "at::toString",       "at::operator",     "at::namedinference", "at::Generator",
        "at::RecordFunction", "at::has_internal", "at::get_overlap",    "at::ScalarType",
    };
    static const char *const closed[] = {
        "c10::Dispatcher",
        "c10::OperatorHandle",
        "c10::KernelFunction",
        "c10::SafeKernel",
        "c10::BoxedKernel",
        "torch::Library",
        "torch::jit",
        "torch::nn",
        "torch::inductor",
        "torch::dynamo",
        "torch::CppFunction",
        "torch::executor",
        "torch::stable",
        "torch::aot",
        "torch::lazy",
        "torch::nativert",
        "torch::functorch",
        "torch::distributed",
        "c10d::",
        "fbgemm::",
    };
    if (str_starts(name, S("at::_ops::")))
        return memory_operator(str_drop(name, strlen("at::_ops::")));
    if (str_starts(name, S("at::")))
        return starts_with_one(name, open, COUNT(open));
    return !starts_with_one(name, closed, COUNT(closed));
}

bool torch_import_allowed(const char *symbol)
{
    char room[1024];
    struct str s = str_from(symbol);
    if (str_starts(s, S("Py")) || str_starts(s, S("_Py")) || str_starts(s, S("THP")) ||
        str_eq(s, S("__libc_single_threaded")) || str_eq(s, S("__dynamic_cast")))
        return true;
    /* Types and tables of them are no code. */
    if (str_starts(s, S("_ZT")) || !str_starts(s, S("_Z")))
        return import_allowed(symbol);
    return torch_name_allowed(nested_name(s, room, sizeof room));
}

bool library_allowed(const char *soname)
{
    for (size_t i = 0; i < COUNT(libraries); i++)
        if (str_starts(str_from(soname), str_from(libraries[i])))
            return true;
    return false;
}

/* Bytes [at, at + size) of the file, or NULL. */
static const void *span(struct str file, uint64_t at, uint64_t size)
{
    return at <= file.len && size <= file.len - at ? file.ptr + at : NULL;
}

static const char *text_at(struct arena *a, struct str file, const Elf64_Shdr *table, uint64_t at)
{
    if (at >= table->sh_size)
        return NULL;
    const char *p = span(file, table->sh_offset + at, table->sh_size - at);
    return p ? str_z(a, (struct str){ p, strnlen(p, table->sh_size - at) }) : NULL;
}

static const char *symbols_check(struct arena *a, struct str file, const Elf64_Shdr *dynsym,
                                 const Elf64_Shdr *names_table, bool torch)
{
    for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= dynsym->sh_size; at += sizeof(Elf64_Sym)) {
        Elf64_Sym sym;
        const void *p = span(file, dynsym->sh_offset + at, sizeof sym);
        if (p == NULL)
            return "a symbol table that breaks off";
        memcpy(&sym, p, sizeof sym);
        if (sym.st_shndx != SHN_UNDEF || sym.st_name == 0)
            continue;
        const char *name = text_at(a, file, names_table, sym.st_name);
        if (name == NULL || !(torch ? torch_import_allowed(name) : import_allowed(name)))
            return name ? name : "a symbol without a name";
    }
    return NULL;
}

static const char *needed_check(struct arena *a, struct str file, const Elf64_Shdr *dynamic,
                                const Elf64_Shdr *names_table, bool torch)
{
    for (uint64_t at = 0; at + sizeof(Elf64_Dyn) <= dynamic->sh_size; at += sizeof(Elf64_Dyn)) {
        Elf64_Dyn d;
        const void *p = span(file, dynamic->sh_offset + at, sizeof d);
        if (p == NULL)
            return "a dynamic section that breaks off";
        memcpy(&d, p, sizeof d);
        if (d.d_tag != DT_NEEDED)
            continue;
        const char *name = text_at(a, file, names_table, d.d_un.d_val);
        bool ours =
            name != NULL && torch &&
            (str_starts(str_from(name), S("libtorch")) || str_starts(str_from(name), S("libc10")));
        if (name == NULL || (!ours && !library_allowed(name)))
            return name ? name : "a library without a name";
    }
    return NULL;
}

enum err_code imports_check(struct arena *a, const char *so_path, bool torch,
                            const char **ret_offender, struct err *err)
{
    struct str file;
    Elf64_Ehdr head;
    if (file_read(a, so_path, SO_BYTES_MAX, &file, err) != OK)
        return err->code;
    if (file.len < sizeof head || memcmp(file.ptr, ELFMAG, SELFMAG) != 0)
        return err_raise(err, ERR_FORMAT, "the linker left no ELF file");
    memcpy(&head, file.ptr, sizeof head);
    const char *offender = NULL;
    bool seen = false;
    for (unsigned i = 0; i < head.e_shnum && offender == NULL; i++) {
        Elf64_Shdr s, link;
        const void *p = span(file, head.e_shoff + (uint64_t)i * sizeof s, sizeof s);
        if (p == NULL || head.e_shentsize != sizeof s)
            return err_raise(err, ERR_FORMAT, "the linker left a broken ELF file");
        memcpy(&s, p, sizeof s);
        if (s.sh_type != SHT_DYNSYM && s.sh_type != SHT_DYNAMIC)
            continue;
        p = span(file, head.e_shoff + (uint64_t)s.sh_link * sizeof link, sizeof link);
        if (p == NULL)
            return err_raise(err, ERR_FORMAT, "the linker left a broken ELF file");
        memcpy(&link, p, sizeof link);
        seen = seen || s.sh_type == SHT_DYNSYM;
        offender = s.sh_type == SHT_DYNSYM ? symbols_check(a, file, &s, &link, torch)
                                           : needed_check(a, file, &s, &link, torch);
    }
    if (!seen)
        return err_raise(err, ERR_FORMAT, "the linker left a file without symbols");
    *ret_offender = offender;
    return OK;
}
