/* Calls out of the code: prints and failed assertions (through the launch's callbacks), and calls of tile functions that
 * are not inlined. */
#include "cpu/lower.h"
#include <time.h>

/* A slot on the stack, made in the function's first block, so that loops do not make more of them. */
LLVMValueRef stack_slot(Emit *e, LLVMTypeRef type)
{
    LLVMBuilderRef b = LLVMCreateBuilderInContext(e->context);
    LLVMBasicBlockRef entry = LLVMGetEntryBasicBlock(e->function);
    LLVMPositionBuilder(b, entry, LLVMGetFirstInstruction(entry));
    LLVMValueRef slot = LLVMBuildAlloca(b, type, "");
    LLVMDisposeBuilder(b);
    return slot;
}

/* ---- constant data: the code brings along what it calls back with ------------------------------------------------------ */

static LLVMValueRef constant(Emit *e, LLVMValueRef value, const char *name)
{
    LLVMValueRef global = LLVMAddGlobal(e->module, LLVMTypeOf(value), name);
    LLVMSetInitializer(global, value);
    LLVMSetGlobalConstant(global, 1);
    LLVMSetLinkage(global, LLVMPrivateLinkage);
    return global;
}

static LLVMValueRef constant_text(Emit *e, const char *text)
{
    return constant(e, LLVMConstStringInContext2(e->context, text, strlen(text), 0), "text");
}

static LLVMValueRef constant_struct(Emit *e, LLVMValueRef *fields, unsigned count)
{
    return LLVMConstStructInContext(e->context, fields, count, 0);
}

/* A CpuPrintOperand: LLVM lays out the fields as C does. */
static LLVMValueRef print_operand(Emit *e, const Type *type, bool is_unsigned)
{
    int rank = tt_is_tile(type) ? type->rank : 0;
    LLVMValueRef shape[TT_MAX_RANK];
    int64_t size = tt_byte_width(type);
    for (int i = 0; i < rank; i++) {
        shape[i] = const_int(e->i64, type->shape[i]);
        size *= type->shape[i];
    }
    LLVMValueRef extents = LLVMConstArray2(e->i64, shape, (uint64_t)rank);
    LLVMValueRef fields[] = {const_int(e->i32, (int64_t)tt_element(type)->kind),
                             const_int(e->i8, is_unsigned), const_int(e->i32, rank),
                             rank ? constant(e, extents, "shape") : LLVMConstNull(e->ptr),
                             const_int(e->i64, size)};
    _Static_assert(offsetof(CpuPrintOperand, is_unsigned) == 4 && offsetof(CpuPrintOperand, rank) == 8 &&
                       offsetof(CpuPrintOperand, shape) == 16 && offsetof(CpuPrintOperand, size) == 24,
                   "the order above");
    return constant_struct(e, fields, TT_COUNT(fields));
}

static LLVMValueRef print_operands(Emit *e, const Op *op)
{
    if (!op->operand_count)
        return LLVMConstNull(e->ptr);
    int64_t is_unsigned = tt_int_attr(op, ATTR_unsigned_mask, 0);
    LLVMValueRef *operands = TT_NEW_ARRAY(e->arena, LLVMValueRef, op->operand_count);
    for (int i = 0; i < op->operand_count; i++)
        operands[i] = print_operand(e, tt_operand(op, i)->type, is_unsigned >> i & 1);
    return constant(e, LLVMConstArray2(LLVMTypeOf(operands[0]), operands, (uint64_t)op->operand_count),
                    "operands");
}

/* The CpuSite of a place in the program. */
static LLVMValueRef site_of(Lower *l, const Op *op)
{
    Emit *e = l->e;
    bool prints = op->opcode == OP_print;
    Failure failure = {.place = "", .message = ""};
    if (!prints)
        failure = tt_assert_failure(op, l->arena);
    LLVMValueRef fields[] = {const_int(e->i32, (int64_t)failure.kind),
                             constant_text(e, failure.place),
                             constant_text(e, failure.message),
                             constant_text(e, prints ? tt_string_attr(op, ATTR_message, "") : ""),
                             const_int(e->i8, tt_int_attr(op, ATTR_hex, 0) != 0),
                             const_int(e->i32, prints ? op->operand_count : 0),
                             prints ? print_operands(e, op) : LLVMConstNull(e->ptr)};
    _Static_assert(offsetof(CpuSite, failure.place) == 8 && offsetof(CpuSite, failure.message) == 16 &&
                       offsetof(CpuSite, message) == 24 && offsetof(CpuSite, hex) == 32 &&
                       offsetof(CpuSite, operand_count) == 36 && offsetof(CpuSite, operands) == 40,
                   "the order above");
    return constant(e, constant_struct(e, fields, TT_COUNT(fields)), "site");
}

/* ---- calls back -------------------------------------------------------------------------------------------------------- */

static void call_back(Lower *l, size_t field, LLVMValueRef site, LLVMValueRef operands)
{
    Emit *e = l->e;
    LLVMTypeRef params[6] = {e->ptr, e->ptr, e->i32, e->i32, e->i32, e->ptr};
    LLVMValueRef args[6] = {l->launch, site, l->program[0], l->program[1], l->program[2], operands};
    LLVMValueRef callee = emit_load(e, e->ptr, emit_offset(e, l->launch, (int64_t)field), 8);
    LLVMBuildCall2(e->b, LLVMFunctionType(e->nothing, params, 6, false), callee, args, 6, "");
}

static LLVMValueRef any_lane(Emit *e, LLVMValueRef mask)
{
    return width_of(mask) ? emit_intrinsic1(e, "llvm.vector.reduce.or", mask) : mask;
}

/* The values in the first lane where `fails` holds, in memory. */
static LLVMValueRef failing_values(Emit *e, LLVMValueRef fails, LLVMValueRef const *values, int count)
{
    LLVMValueRef lane = NULL, memory = stack_slot(e, LLVMArrayType2(e->i64, (uint64_t)count));
    if (width_of(fails)) {
        LLVMTypeRef bits = LLVMIntTypeInContext(e->context, (unsigned)width_of(fails));
        lane = emit_intrinsic2(e, "llvm.cttz", LLVMBuildBitCast(e->b, fails, bits, ""), const_int(e->i1, 0));
    }
    for (int i = 0; i < count; i++) {
        LLVMValueRef value = values[i];
        if (lane && width_of(value))
            value = LLVMBuildExtractElement(e->b, value, lane, "");
        LLVMBuildStore(e->b, value, emit_offset(e, memory, 8 * i));
    }
    return memory;
}

static void emit_stop(Lower *l)
{
    if (l->is_callee)
        LLVMBuildRet(l->e->b, const_int(l->e->i1, 1));
    else
        LLVMBuildRetVoid(l->e->b);
}

void emit_failure(Lower *l, const Op *op, LLVMValueRef fails, LLVMValueRef const *values, int count)
{
    Emit *e = l->e;
    LLVMBasicBlockRef fail = new_block(e, "fail"), go_on = new_block(e, "holds");
    LLVMBuildCondBr(e->b, any_lane(e, fails), fail, go_on);
    LLVMPositionBuilderAtEnd(e->b, fail);
    LLVMValueRef memory = count ? failing_values(e, fails, values, count) : LLVMConstNull(e->ptr);
    call_back(l, offsetof(CpuLaunch, fail), site_of(l, op), memory);
    emit_stop(l);
    LLVMPositionBuilderAtEnd(e->b, go_on);
}

/* Linux's monotonic clock, which gives seconds and nanoseconds. */
void lower_clock(Lower *l, Op *op)
{
    Emit *e = l->e;
    straight(l);
    LLVMTypeRef pair = LLVMArrayType2(e->i64, 2);
    LLVMValueRef time = stack_slot(e, pair), args[] = {const_int(e->i32, CLOCK_MONOTONIC), time};
    emit_call(e, "clock_gettime", e->i32, args, 2);
    LLVMValueRef now = emit_load(e, pair, time, 8);
    LLVMValueRef seconds = LLVMBuildExtractValue(e->b, now, 0, "");
    seconds = LLVMBuildMul(e->b, seconds, const_int(e->i64, 1000000000), "");
    info_of(op->results[0])->scalar =
        LLVMBuildAdd(e->b, seconds, LLVMBuildExtractValue(e->b, now, 1, ""), "");
}

void lower_print(Lower *l, Op *op)
{
    Emit *e = l->e;
    int count = op->operand_count;
    LLVMValueRef pointers[64], values[64];
    if (count > (int)TT_COUNT(pointers))
        tt_unsupported(op->loc, "the CPU prints at most %zu values at once", TT_COUNT(pointers));
    for (int i = 0; i < count; i++)
        values[i] = tt_is_tile(tt_operand(op, i)->type) ? NULL : lower_scalar(l, tt_operand(op, i));
    straight(l);
    LLVMValueRef array = stack_slot(e, LLVMArrayType2(e->ptr, (uint64_t)TT_MAX(count, 1)));
    for (int i = 0; i < count; i++) {
        Value *value = tt_operand(op, i);
        if (values[i]) {
            pointers[i] = stack_slot(e, memory_type(e, value->type));
            emit_store(e, to_memory_form(e, values[i]), pointers[i], tt_byte_width(value->type));
        } else {
            pointers[i] = buffer_pointer(l, info_of(value)->buffer);
        }
        emit_store(e, pointers[i], emit_offset(e, array, 8 * i), 8);
    }
    call_back(l, offsetof(CpuLaunch, print), site_of(l, op), array);
}

/* ---- calls of tile functions ------------------------------------------------------------------------------------------------------ */

/* bool f(launch, scratch, x, y, z, arguments..., results...): true means that the program failed. Scalars are passed as
 * they are, tiles as pointers to their elements; each result is a pointer to where it goes. */
void lower_call(Lower *l, Op *op)
{
    Emit *e = l->e;
    Function *callee = tt_find_function(l->function->module, tt_string_attr(op, ATTR_callee, ""));
    if (!callee)
        tt_bug("cpu: call of a function that is not there");
    LoweredFunction *lowered = lower_function(l, callee, op->loc);
    int count = 0;
    LLVMValueRef *args = TT_NEW_ARRAY(l->arena, LLVMValueRef, 5 + op->operand_count + op->result_count);
    for (int i = 0; i < op->operand_count; i++)
        if (!tt_is_tile(tt_operand(op, i)->type))
            lower_scalar(l, tt_operand(op, i));
    straight(l);
    args[count++] = l->launch;
    args[count++] = emit_offset(e, l->scratch, l->scratch_size);
    for (int i = 0; i < 3; i++)
        args[count++] = l->program[i];
    for (int i = 0; i < op->operand_count; i++) {
        const ValueInfo *info = info_of(tt_operand(op, i));
        args[count++] = info->scalar ? info->scalar : buffer_pointer(l, info->buffer);
    }
    for (int i = 0; i < op->result_count; i++) {
        const Value *result = op->results[i];
        args[count++] = tt_is_tile(result->type) ? buffer_pointer(l, info_of(result)->buffer)
                                                 : stack_slot(e, memory_type(e, result->type));
    }
    begin_access(e, op);
    LLVMValueRef failed = LLVMBuildCall2(e->b, lowered->type, lowered->function, args, (unsigned)count, "");
    end_access(e);
    for (int i = 0; i < op->result_count; i++) {
        const Type *type = op->results[i]->type;
        info_of(op->results[i])->stored = tt_is_tile(type);
        if (!tt_is_tile(type))
            info_of(op->results[i])->scalar = to_register_form(
                e, emit_load(e, memory_type(e, type), args[5 + op->operand_count + i], tt_byte_width(type)),
                type);
    }
    LLVMBasicBlockRef fail = new_block(e, "fail"), go_on = new_block(e, "returned");
    LLVMBuildCondBr(e->b, failed, fail, go_on);
    LLVMPositionBuilderAtEnd(e->b, fail);
    emit_stop(l);
    LLVMPositionBuilderAtEnd(e->b, go_on);
    l->callee_scratch = TT_MAX(l->callee_scratch, lowered->scratch_size);
}

void emit_stop_after_failure(Lower *l)
{
    Emit *e = l->e;
    LLVMValueRef stopped = emit_load(e, e->i32, emit_offset(e, l->launch, offsetof(CpuLaunch, stopped)), 4);
    LLVMSetVolatile(stopped, 1);
    LLVMBasicBlockRef stop = new_block(e, "stop"), go_on = new_block(e, "go_on");
    LLVMBuildCondBr(e->b, LLVMBuildIsNotNull(e->b, stopped, ""), stop, go_on);
    LLVMPositionBuilderAtEnd(e->b, stop);
    emit_stop(l);
    LLVMPositionBuilderAtEnd(e->b, go_on);
}
