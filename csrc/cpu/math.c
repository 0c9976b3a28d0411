/* Functions of the mathematical library, by their C names. On vectors: glibc's libmvec where it has the function (its
 * names follow the vector function ABI of x86-64 and AArch64; at most 4 ulp off), else libm lane by lane. The
 * exponentials, logarithms and erf of f32 are ours: see exponentials.c. */
#include "cpu/emit.h"
#include <dlfcn.h>
#include <math.h>

typedef struct MathFunction {
    const char *name;
    int arity;
    void *on_double, *on_float;
    bool vectors;          /* libmvec may have it */
    const char *intrinsic; /* LLVM has it */
} MathFunction;

#define PLAIN(name, arity) {#name, arity, (void *)name, (void *)name##f, false, NULL}
#define VECTOR(name, arity) {#name, arity, (void *)name, (void *)name##f, true, NULL}
#define INLINE(name, arity) {#name, arity, (void *)name, (void *)name##f, false, "llvm." #name}

double exp10(double x);
float exp10f(float x);

static const MathFunction functions[] = {
    VECTOR(acos, 1),  VECTOR(acosh, 1), VECTOR(asin, 1),     VECTOR(asinh, 1),    VECTOR(atan, 1),
    VECTOR(atan2, 2), VECTOR(atanh, 1), VECTOR(cbrt, 1),     INLINE(copysign, 2), VECTOR(cos, 1),
    VECTOR(cosh, 1),  VECTOR(erf, 1),   VECTOR(erfc, 1),     VECTOR(exp, 1),      VECTOR(exp10, 1),
    VECTOR(exp2, 1),  VECTOR(expm1, 1), PLAIN(fdim, 2),      PLAIN(fma, 3),       PLAIN(fmod, 2),
    VECTOR(hypot, 2), PLAIN(j0, 1),     PLAIN(j1, 1),        PLAIN(jn, 2),        PLAIN(ldexp, 2),
    PLAIN(lgamma, 1), VECTOR(log, 1),   VECTOR(log10, 1),    VECTOR(log1p, 1),    VECTOR(log2, 1),
    PLAIN(logb, 1),   VECTOR(pow, 2),   PLAIN(remainder, 2), INLINE(rint, 1),     INLINE(round, 1),
    VECTOR(sin, 1),   VECTOR(sinh, 1),  VECTOR(tan, 1),      VECTOR(tanh, 1),     PLAIN(tgamma, 1),
    INLINE(trunc, 1), PLAIN(y0, 1),     PLAIN(y1, 1),        PLAIN(yn, 2),
};

static const MathFunction *find_function(const char *name)
{
    for (size_t i = 0; i < TT_COUNT(functions); i++)
        if (!strcmp(functions[i].name, name))
            return &functions[i];
    return NULL;
}

/* The library stays open: code that calls into it may live as long as the process. */
static void *find_in_libmvec(const char *name)
{
    void *library = dlopen("libmvec.so.1", RTLD_LAZY | RTLD_LOCAL);
    return library ? dlsym(library, name) : NULL;
}

void *tt_cpu_symbol(const char *name)
{
    if (!strncmp(name, "_ZGV", 4))
        return find_in_libmvec(name);
    for (size_t i = 0; i < TT_COUNT(functions); i++) {
        size_t length = strlen(functions[i].name);
        if (strncmp(functions[i].name, name, length))
            continue;
        if (!name[length])
            return functions[i].on_double;
        if (!strcmp(name + length, "f"))
            return functions[i].on_float;
    }
    return NULL;
}

/* The vector function of `lanes` lanes, or NULL. */
static const char *find_vector_function(Emit *e, const MathFunction *function, bool is_double, int lanes)
{
    char isa = !e->codegen->host.is_x86 ? 'n' : e->widest == 64 ? 'e' : e->widest == 32 ? 'd' : 'b';
    int bytes = lanes * (is_double ? 8 : 4);
    if (e->codegen->host.is_x86 && bytes < e->widest)
        isa = bytes == 32 ? 'd' : 'b';
    const char *name = tt_arena_format(e->arena, "_ZGV%cN%d%.*s_%s%s", isa, lanes, function->arity, "vvv",
                                       function->name, is_double ? "" : "f");
    return find_in_libmvec(name) ? name : NULL;
}

static LLVMValueRef call_by_lanes(Emit *e, const MathFunction *function, LLVMTypeRef type, LLVMValueRef *args)
{
    bool is_double = element_of(type) == e->f64;
    const char *name = is_double ? function->name : tt_arena_format(e->arena, "%sf", function->name);
    int width = width_of(args[0]);
    if (!width)
        return emit_call(e, name, type, args, function->arity);
    LLVMValueRef result = LLVMGetPoison(type), lane[3];
    for (int i = 0; i < width; i++) {
        for (int j = 0; j < function->arity; j++)
            lane[j] = emit_lane(e, args[j], i);
        LLVMValueRef value = emit_call(e, name, element_of(type), lane, function->arity);
        result = LLVMBuildInsertElement(e->b, result, value, const_int(e->i32, i), "");
    }
    return result;
}

/* In pieces of the machine's width; NULL when libmvec has nothing. */
static LLVMValueRef call_vector_function(Emit *e, const MathFunction *function, LLVMTypeRef type,
                                         LLVMValueRef *args)
{
    bool is_double = element_of(type) == e->f64;
    int width = width_of(args[0]), least = is_double ? 2 : 4;
    int lanes = TT_MAX(least, TT_MIN(width, e->widest / (is_double ? 8 : 4)));
    const char *name =
        function->vectors && width ? find_vector_function(e, function, is_double, lanes) : NULL;
    if (!name)
        return NULL;
    LLVMValueRef result = NULL, piece[3];
    LLVMTypeRef piece_type = widened(element_of(type), lanes);
    int indices[128];
    for (int at = 0; at < width; at += lanes) {
        for (int i = 0; i < lanes; i++)
            indices[i] = at + i < width ? at + i : -1;
        for (int j = 0; j < function->arity; j++)
            piece[j] = lanes == width ? args[j] : emit_shuffle(e, args[j], NULL, indices, lanes);
        LLVMValueRef part = emit_call(e, name, piece_type, piece, function->arity);
        result = at ? emit_join(e, result, part) : part;
    }
    return width < lanes ? emit_part(e, result, 0, width) : result;
}

LLVMValueRef emit_math(Emit *e, const Op *op, const char *name, LLVMValueRef *args, int arg_count)
{
    const MathFunction *function = find_function(name);
    if (!function || function->arity != arg_count)
        tt_unsupported(op->loc, "the CPU has no function '%s' of %d arguments", name, arg_count);
    LLVMTypeRef type = with_element(LLVMTypeOf(args[0]), register_type(e, op->results[0]->type));
    if (element_of(type) != e->f64)
        type = with_element(type, e->f32);
    if (function->intrinsic)
        return emit_intrinsic(e, function->intrinsic, &type, 1, args, arg_count);
    LLVMValueRef result = emit_exponential(e, name, type, args[0]);
    if (!result)
        result = call_vector_function(e, function, type, args);
    return result ? result : call_by_lanes(e, function, type, args);
}
