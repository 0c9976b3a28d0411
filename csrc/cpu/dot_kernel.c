/* The register-blocked product: a block of rows x vectors of accumulators stays in registers over all of k, while each
 * step along k loads `vectors` vectors of b and broadcasts `rows` elements of a. Blocks at the edges have kernels of
 * their own size; columns beyond n are masked when the accumulators are loaded and stored. */
#include "cpu/dot.h"

enum { MOST_ROWS = 14, MOST_VECTORS = 4 };

typedef struct DotKernel {
    Emit *e;
    const DotPlan *plan;
    int width;            /* lanes of an accumulator */
    int64_t steps;        /* along k, in pairs where there are pairs */
    int rows, vectors;    /* of a full block */
    LLVMValueRef a, b, c; /* of the current batch */
    LLVMTypeRef sum_vector;
} DotKernel;

/* ---- the size of a block ------------------------------------------------------------------------------------------------------ */

/* Cycles of one step of a rows x vectors block: products, against loads, against the latency of the sums. */
static double step_cycles(int rows, int vectors)
{
    double products = rows * vectors, loads = vectors + 0.5 * rows;
    return TT_MAX(TT_MAX(products, loads), 4.0) + 0.05 * (rows + vectors);
}

static double total_cycles(int64_t m, int64_t columns, int rows, int vectors)
{
    int64_t full_rows = m / rows, full_columns = columns / vectors;
    int last_rows = (int)(m % rows), last_vectors = (int)(columns % vectors);
    double total = (double)(full_rows * full_columns) * step_cycles(rows, vectors);
    if (last_rows)
        total += (double)full_columns * step_cycles(last_rows, vectors);
    if (last_vectors)
        total += (double)full_rows * step_cycles(rows, last_vectors);
    if (last_rows && last_vectors)
        total += step_cycles(last_rows, last_vectors);
    return total;
}

static void choose_block(DotKernel *kernel)
{
    const DotPlan *plan = kernel->plan;
    int64_t columns = (plan->n + kernel->width - 1) / kernel->width;
    int registers = kernel->e->codegen->host.has_avx512 || !kernel->e->codegen->host.is_x86 ? 32 : 16;
    double best = 0;
    for (int vectors = 1; vectors <= MOST_VECTORS; vectors++)
        for (int rows = 1; rows <= MOST_ROWS; rows++) {
            if (rows > plan->m || vectors > columns || rows * vectors + vectors + 1 > registers - 1)
                continue;
            double cycles = total_cycles(plan->m, columns, rows, vectors);
            if (best == 0 || cycles < best) {
                best = cycles;
                kernel->rows = rows;
                kernel->vectors = vectors;
            }
        }
}

/* ---- a block -------------------------------------------------------------------------------------------------------------------- */

static LLVMValueRef multiply_add_pairs(DotKernel *kernel, LLVMValueRef a, LLVMValueRef b, LLVMValueRef sum)
{
    Emit *e = kernel->e;
    bool floats = tt_is_float(kernel->plan->element);
    const char *name = floats ? "llvm.x86.avx512bf16.dpbf16ps.512" : "llvm.x86.avx512.vpdpwssd.512";
    unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    LLVMTypeRef params[3];
    LLVMGetParamTypes(LLVMIntrinsicGetType(e->context, id, NULL, 0), params);
    LLVMValueRef args[3] = {sum, LLVMBuildBitCast(e->b, a, params[1], ""),
                            LLVMBuildBitCast(e->b, b, params[2], "")};
    return emit_intrinsic(e, name, NULL, 0, args, 3);
}

static LLVMValueRef multiply_add(DotKernel *kernel, LLVMValueRef a, LLVMValueRef b, LLVMValueRef sum)
{
    Emit *e = kernel->e;
    if (kernel->plan->pairs)
        return multiply_add_pairs(kernel, a, b, sum);
    if (!tt_is_float(kernel->plan->sum))
        return LLVMBuildAdd(e->b, sum, LLVMBuildMul(e->b, a, b, ""), "");
    LLVMTypeRef type = LLVMTypeOf(sum);
    return emit_intrinsic(e, "llvm.fmuladd", &type, 1, (LLVMValueRef[]){a, b, sum}, 3);
}

/* One step along k: `at_a` and `at_b` point to it in the first row of a and in the first column of b. */
static void emit_step(DotKernel *kernel, int rows, int vectors, LLVMValueRef at_a, LLVMValueRef at_b,
                      LLVMValueRef *sums)
{
    Emit *e = kernel->e;
    const DotPlan *plan = kernel->plan;
    int bytes = tt_byte_width(plan->element) * (plan->pairs ? 2 : 1);
    LLVMTypeRef unit = plan->pairs ? e->i32 : register_type(e, plan->element);
    LLVMValueRef b[MOST_VECTORS];
    for (int j = 0; j < vectors; j++)
        b[j] =
            emit_load(e, widened(unit, kernel->width),
                      emit_offset(e, at_b, (int64_t)j * kernel->width * bytes), tt_byte_width(plan->element));
    for (int i = 0; i < rows; i++) {
        LLVMValueRef a =
            emit_load(e, unit, emit_offset(e, at_a, i * kernel->steps * bytes), tt_byte_width(plan->element));
        a = emit_splat(e, a, kernel->width);
        for (int j = 0; j < vectors; j++)
            sums[i * vectors + j] = multiply_add(kernel, a, b[j], sums[i * vectors + j]);
    }
}

static void emit_steps(DotKernel *kernel, int rows, int vectors, LLVMValueRef at_a, LLVMValueRef at_b,
                       LLVMValueRef *sums)
{
    Emit *e = kernel->e;
    const DotPlan *plan = kernel->plan;
    int64_t bytes = tt_byte_width(plan->element) * (plan->pairs ? 2 : 1);
    int unroll = kernel->steps % 4 == 0 ? 4 : kernel->steps % 2 == 0 ? 2 : 1;
    EmitLoop loop = {0};
    bool loops = kernel->steps > unroll;
    if (loops) {
        loop = begin_loop(e, 0, kernel->steps, unroll, sums, rows * vectors);
        LLVMValueRef down = LLVMBuildMul(e->b, loop.index, const_int(e->i64, plan->n * bytes), "");
        at_b = emit_index(e, e->i8, at_b, down);
        at_a = emit_index(e, e->i8, at_a, LLVMBuildMul(e->b, loop.index, const_int(e->i64, bytes), ""));
    }
    for (int i = 0; i < unroll; i++)
        emit_step(kernel, rows, vectors, emit_offset(e, at_a, i * bytes),
                  emit_offset(e, at_b, i * plan->n * bytes), sums);
    if (loops)
        end_loop(e, &loop, sums);
}

/* Pointer and mask of the accumulators in row i, vector j of a block. */
static LLVMValueRef sum_place(DotKernel *kernel, LLVMValueRef at_c, int i, int j)
{
    int64_t element = i * kernel->plan->n + j * kernel->width;
    return emit_offset(kernel->e, at_c, element * tt_byte_width(kernel->plan->result->type));
}

static LLVMValueRef load_sum(DotKernel *kernel, LLVMValueRef place, LLVMValueRef mask)
{
    Emit *e = kernel->e;
    const Type *type = kernel->plan->result->type;
    if (kernel->plan->start)
        return emit_splat(e, emit_element_cast(e, kernel->plan->start, type, kernel->plan->sum),
                          kernel->width);
    LLVMTypeRef vector = widened(memory_type(e, type), kernel->width);
    LLVMValueRef value = emit_masked_load(e, vector, place, mask, NULL, tt_byte_width(type));
    return emit_element_cast(e, value, type, kernel->plan->sum);
}

/* The block whose first row and column these point to; `columns` of it are in the matrix. */
static void emit_block(DotKernel *kernel, int rows, int vectors, int64_t columns, LLVMValueRef at_a,
                       LLVMValueRef at_b, LLVMValueRef at_c)
{
    Emit *e = kernel->e;
    const Type *type = kernel->plan->result->type;
    LLVMValueRef sums[MOST_ROWS * MOST_VECTORS], masks[MOST_VECTORS];
    for (int j = 0; j < vectors; j++) {
        int64_t active = TT_MIN(columns - j * kernel->width, kernel->width);
        masks[j] = active < kernel->width ? const_mask(e, kernel->width, (int)active) : NULL;
    }
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < vectors; j++)
            sums[i * vectors + j] = load_sum(kernel, sum_place(kernel, at_c, i, j), masks[j]);
    emit_steps(kernel, rows, vectors, at_a, at_b, sums);
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < vectors; j++) {
            LLVMValueRef value = emit_element_cast(e, sums[i * vectors + j], kernel->plan->sum, type);
            emit_masked_store(e, value, sum_place(kernel, at_c, i, j), masks[j], tt_byte_width(type));
        }
}

/* ---- all blocks ----------------------------------------------------------------------------------------------------------------- */

static LLVMValueRef scaled(Emit *e, LLVMValueRef pointer, LLVMValueRef index, int64_t bytes)
{
    return emit_index(e, e->i8, pointer, LLVMBuildMul(e->b, index, const_int(e->i64, bytes), ""));
}

/* The rows of one panel of columns. */
static void emit_panel(DotKernel *kernel, int vectors, int64_t columns, LLVMValueRef at_b, LLVMValueRef at_c)
{
    Emit *e = kernel->e;
    const DotPlan *plan = kernel->plan;
    int64_t full = plan->m / kernel->rows * kernel->rows;
    int64_t row_a = plan->k * tt_byte_width(plan->element),
            row_c = plan->n * tt_byte_width(plan->result->type);
    if (full > kernel->rows) {
        EmitLoop loop = begin_loop(e, 0, full, kernel->rows, NULL, 0);
        emit_block(kernel, kernel->rows, vectors, columns, scaled(e, kernel->a, loop.index, row_a), at_b,
                   scaled(e, at_c, loop.index, row_c));
        end_loop(e, &loop, NULL);
    } else if (full) {
        emit_block(kernel, kernel->rows, vectors, columns, kernel->a, at_b, at_c);
    }
    if (plan->m > full)
        emit_block(kernel, (int)(plan->m - full), vectors, columns, emit_offset(e, kernel->a, full * row_a),
                   at_b, emit_offset(e, at_c, full * row_c));
}

static void emit_panels(DotKernel *kernel)
{
    Emit *e = kernel->e;
    const DotPlan *plan = kernel->plan;
    int64_t wide = (int64_t)kernel->vectors * kernel->width, full = plan->n / wide * wide,
            rest = plan->n - full;
    int64_t b_bytes = tt_byte_width(plan->element) * (plan->pairs ? 2 : 1),
            c_bytes = tt_byte_width(plan->result->type);
    if (full > wide) {
        EmitLoop loop = begin_loop(e, 0, full, wide, NULL, 0);
        emit_panel(kernel, kernel->vectors, wide, scaled(e, kernel->b, loop.index, b_bytes),
                   scaled(e, kernel->c, loop.index, c_bytes));
        end_loop(e, &loop, NULL);
    } else if (full) {
        emit_panel(kernel, kernel->vectors, wide, kernel->b, kernel->c);
    }
    if (rest)
        emit_panel(kernel, (int)((rest + kernel->width - 1) / kernel->width), rest,
                   emit_offset(e, kernel->b, full * b_bytes), emit_offset(e, kernel->c, full * c_bytes));
}

void emit_dot(Lower *l, const DotPlan *plan)
{
    Emit *e = l->e;
    DotKernel kernel = {.e = e, .plan = plan, .steps = plan->pairs ? plan->k / 2 : plan->k};
    int lanes = e->widest / tt_byte_width(plan->sum);
    kernel.width = plan->pairs ? lanes : (int)TT_MIN(lanes, TT_MAX(tt_next_pow2(plan->n), 2));
    choose_block(&kernel);
    kernel.a = buffer_pointer(l, plan->a);
    kernel.b = buffer_pointer(l, plan->b);
    kernel.c = buffer_pointer(l, plan->result);
    if (plan->batches == 1) {
        emit_panels(&kernel);
        return;
    }
    EmitLoop loop = begin_loop(e, 0, plan->batches, 1, NULL, 0);
    kernel.a = scaled(e, kernel.a, loop.index, plan->a->bytes / plan->batches);
    kernel.b = scaled(e, kernel.b, loop.index, plan->b->bytes / plan->batches);
    kernel.c = scaled(e, kernel.c, loop.index, plan->result->bytes / plan->batches);
    emit_panels(&kernel);
    end_loop(e, &loop, NULL);
}
