/* One LLVM function a tile function: the kernel, which runs its body for a range of programs, and functions that it calls
 * instead of inlining them. */
#include "cpu/lower.h"

static LLVMValueRef launch_field(Lower *l, LLVMTypeRef type, size_t offset, int align)
{
    return emit_load(l->e, type, emit_offset(l->e, l->launch, (int64_t)offset), align);
}

static void load_stream_flag(Lower *l)
{
    LLVMValueRef flag = launch_field(l, l->e->i32, offsetof(CpuLaunch, stream), 4);
    l->stream = LLVMBuildICmp(l->e->b, LLVMIntNE, flag, const_int(l->e->i32, 0), "");
}

static LLVMValueRef add_function(Emit *e, const char *name, LLVMTypeRef type)
{
    LLVMValueRef function = LLVMAddFunction(e->module, name, type);
    static const char *const attributes[] = {"nounwind"};
    for (size_t i = 0; i < TT_COUNT(attributes); i++) {
        unsigned kind = LLVMGetEnumAttributeKindForName(attributes[i], strlen(attributes[i]));
        LLVMAddAttributeAtIndex(function, LLVMAttributeFunctionIndex,
                                LLVMCreateEnumAttribute(e->context, kind, 0));
    }
    return function;
}

static void add_parameter_attribute(Emit *e, LLVMValueRef function, int parameter, const char *name)
{
    unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
    LLVMAddAttributeAtIndex(function, (LLVMAttributeIndex)(parameter + 1),
                            LLVMCreateEnumAttribute(e->context, kind, 0));
}

static void release_builder(void *builder) { LLVMDisposeBuilder(builder); }

Lower *new_lower(Emit *e, Arena *arena, CpuImage *image, Function *function, Map *functions)
{
    Lower *l = TT_NEW(arena, Lower);
    l->e = e;
    l->arena = arena;
    l->image = image;
    l->function = function;
    l->functions = functions;
    l->plans.arena = l->dots.arena = l->views.arena = arena;
    l->axis = tt_analyze_aligned_axis_info(function, arena);
    tt_take_marks(function);
    for (size_t i = 0; i < TT_COUNT(l->builders); i++) {
        l->builders[i] = LLVMCreateBuilderInContext(e->context);
        tt_arena_on_release(arena, release_builder, l->builders[i]);
    }
    return l;
}

static void load_parameters(Lower *l)
{
    LLVMValueRef args = launch_field(l, l->e->ptr, offsetof(CpuLaunch, args), 8);
    const Region *body = l->function->body;
    for (int i = 0; i < body->arg_count; i++) {
        const Type *type = body->args[i]->type;
        if (tt_is_tile(type))
            tt_bug("cpu: a kernel's parameter is a tile");
        LLVMValueRef slot = emit_offset(l->e, args, 8 * i);
        LLVMValueRef value = emit_load(l->e, memory_type(l->e, type), slot, 8);
        info_of(body->args[i])->scalar = to_register_form(l->e, value, type);
    }
}

/* Which axes of the grid a function asks for its place on, as bits; those that calls, prints and assertions need too. */
static unsigned axes_used(const Region *region)
{
    unsigned axes = 0;
    for (const Op *op = region->first; op; op = op->next) {
        if (op->opcode == OP_program_id)
            axes |= 1u << tt_int_attr(op, ATTR_axis, 0);
        else if (op->opcode == OP_call || op->opcode == OP_print || op->opcode == OP_assert)
            axes |= 7;
        for (int i = 0; i < op->region_count; i++)
            axes |= axes_used(op->regions[i]);
    }
    return axes;
}

/* The place of the next program: axis 0 is the fastest. `used` has no gaps from below. */
static void next_program(Lower *l, unsigned used, LLVMValueRef *next)
{
    LLVMBuilderRef b = l->e->b;
    LLVMValueRef carry = const_int(l->e->i32, 1), zero = const_int(l->e->i32, 0);
    for (int i = 0; i < 3 && used >> i; i++) {
        LLVMValueRef up = LLVMBuildAdd(b, l->program[i], carry, "");
        LLVMValueRef wraps = LLVMBuildICmp(b, LLVMIntEQ, up, l->grid[i], "");
        next[i] = emit_select(l->e, wraps, zero, up);
        carry = LLVMBuildZExt(b, wraps, l->e->i32, "");
    }
}

/* Which program it is, for whoever ends it from outside. */
static void note_place(Lower *l, LLVMValueRef left)
{
    Emit *e = l->e;
    LLVMSetVolatile(emit_store(e, left, emit_offset(e, l->scratch, offsetof(CpuScratch, left)), 8), true);
}

/* void entry(CpuLaunch *launch, void *scratch, int64_t count, int32_t x, int32_t y, int32_t z) */
void lower_kernel(Lower *l)
{
    Emit *e = l->e;
    LLVMTypeRef params[6] = {e->ptr, e->ptr, e->i64, e->i32, e->i32, e->i32};
    LLVMTypeRef type = LLVMFunctionType(e->nothing, params, TT_COUNT(params), false);
    LLVMValueRef function = add_function(e, l->function->name, type), next[3];
    add_parameter_attribute(e, function, 1, "noalias");
    e->function = function;
    enter_places(e, function, l->function->name);
    l->launch = LLVMGetParam(function, 0);
    l->scratch = LLVMGetParam(function, 1);
    LLVMBasicBlockRef entry = new_block(e, "entry"), program = new_block(e, "program"),
                      done = new_block(e, "done");
    LLVMPositionBuilderAtEnd(l->builders[0], entry);
    straight(l);
    plan_function(l);
    load_parameters(l);
    unsigned used = axes_used(l->function->body);
    for (int i = 0; i < 3; i++)
        l->grid[i] = launch_field(l, e->i32, offsetof(CpuLaunch, grid) + 4 * (size_t)i, 4);
    load_stream_flag(l);
    LLVMBuildBr(e->b, program);
    LLVMPositionBuilderAtEnd(e->b, program);
    LLVMValueRef left = LLVMBuildPhi(e->b, e->i64, ""), count = LLVMGetParam(function, 2);
    LLVMAddIncoming(left, &count, &entry, 1);
    for (unsigned i = 0; i < 3 && used >> i; i++) {
        LLVMValueRef first = LLVMGetParam(function, 3 + i);
        l->program[i] = LLVMBuildPhi(e->b, e->i32, "");
        LLVMAddIncoming(l->program[i], &first, &entry, 1);
    }
    note_place(l, left);
    lower_region(l, l->function->body);
    LLVMBasicBlockRef latch = LLVMGetInsertBlock(e->b);
    next_program(l, used, next);
    for (int i = 0; i < 3 && used >> i; i++)
        LLVMAddIncoming(l->program[i], &next[i], &latch, 1);
    LLVMValueRef rest = LLVMBuildSub(e->b, left, const_int(e->i64, 1), "");
    LLVMAddIncoming(left, &rest, &latch, 1);
    LLVMBuildCondBr(e->b, LLVMBuildICmp(e->b, LLVMIntEQ, rest, const_int(e->i64, 0), ""), done, program);
    LLVMPositionBuilderAtEnd(e->b, done);
    report_stores(l);
    if (l->image->streams) /* so that whoever waits for the programs sees what they stored */
        emit_intrinsic(e, "llvm.x86.sse.sfence", NULL, 0, NULL, 0);
    LLVMBuildRetVoid(e->b);
    l->image->scratch_size = (size_t)(l->scratch_size + l->callee_scratch);
}

/* ---- functions that are called, not inlined --------------------------------------------------------------------------------- */

static LLVMTypeRef callee_type(Emit *e, const Function *function)
{
    const Region *body = function->body;
    int count = 0;
    LLVMTypeRef *params = TT_NEW_ARRAY(e->arena, LLVMTypeRef, 5 + body->arg_count + function->result_count);
    params[count++] = e->ptr;
    params[count++] = e->ptr;
    for (int i = 0; i < 3; i++)
        params[count++] = e->i32;
    for (int i = 0; i < body->arg_count; i++)
        params[count++] = tt_is_tile(body->args[i]->type) ? e->ptr : register_type(e, body->args[i]->type);
    for (int i = 0; i < function->result_count; i++)
        params[count++] = e->ptr;
    return LLVMFunctionType(e->i1, params, (unsigned)count, false);
}

static void bind_callee_parameters(Lower *l, LLVMValueRef function)
{
    l->launch = LLVMGetParam(function, 0);
    l->scratch = LLVMGetParam(function, 1);
    for (int i = 0; i < 3; i++) {
        l->program[i] = LLVMGetParam(function, (unsigned)(2 + i));
        l->grid[i] = launch_field(l, l->e->i32, offsetof(CpuLaunch, grid) + 4 * (size_t)i, 4);
    }
    load_stream_flag(l);
    const Region *body = l->function->body;
    for (int i = 0; i < body->arg_count; i++) {
        ValueInfo *info = info_of(body->args[i]);
        LLVMValueRef param = LLVMGetParam(function, (unsigned)(5 + i));
        if (!tt_is_tile(body->args[i]->type)) {
            info->scalar = param;
            continue;
        }
        info->buffer = TT_NEW(l->arena, Buffer);
        info->buffer->type = body->args[i]->type;
        info->buffer->outside = param;
        info->stored = true;
    }
}

static void return_results(Lower *l, LLVMValueRef function)
{
    Emit *e = l->e;
    const Op *end = tt_terminator(l->function->body);
    for (int i = 0; i < end->operand_count; i++) {
        Value *value = tt_operand(end, i);
        LLVMValueRef to = LLVMGetParam(function, (unsigned)(5 + l->function->body->arg_count + i));
        if (tt_is_tile(value->type)) {
            Buffer result = {.type = value->type, .outside = to};
            lower_copy(l, value, &result, 0);
            continue;
        }
        LLVMValueRef scalar = to_memory_form(e, lower_scalar(l, value));
        emit_store(e, scalar, to, tt_byte_width(value->type));
    }
    report_stores(l);
    LLVMBuildRet(e->b, const_int(e->i1, 0));
}

LoweredFunction *lower_function(Lower *caller, Function *function, const Loc *call)
{
    void **slot = tt_map_slot_ptr(caller->functions, function);
    LoweredFunction *lowered = *slot;
    if (lowered && !lowered->finished)
        tt_unsupported(call, "'%s' calls itself, which the CPU target cannot do", function->name);
    if (lowered)
        return lowered;
    *slot = lowered = TT_NEW(caller->arena, LoweredFunction);
    Emit *e = caller->e;
    LLVMValueRef outer = e->function;
    Lower *l = new_lower(e, caller->arena, caller->image, function, caller->functions);
    l->is_callee = true;
    lowered->type = callee_type(e, function);
    e->function = lowered->function = add_function(e, function->name, lowered->type);
    LLVMSetLinkage(lowered->function, LLVMInternalLinkage);
    void *outer_places = enter_places(e, lowered->function, function->name);
    LLVMPositionBuilderAtEnd(l->builders[0], new_block(e, "entry"));
    straight(l);
    plan_function(l);
    bind_callee_parameters(l, lowered->function);
    lower_region(l, function->body);
    return_results(l, lowered->function);
    tt_return_marks(function);
    lowered->scratch_size = l->scratch_size + l->callee_scratch;
    lowered->finished = true;
    e->function = outer;
    leave_places(e, outer_places);
    straight(caller);
    return lowered;
}
