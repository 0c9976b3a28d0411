/* Internal to the choice of layouts: the groups of values that have one layout, and what speaks for which. layout_groups.c
 * finds all of it, and decide_layouts.c goes by that. */
#pragma once
#include "gpu/layout_preferences.h"

typedef struct Group {
    struct Group *parent; /* union-find: NULL of a group's root, which alone speaks for it */
    const Type *type;     /* any member's: the shape counts */
    const LinearLayout *layout;
    TT_VECTOR(Preference) votes;
    int64_t combined[TT_MAX_RANK]; /* how often members are combined along each dimension */
    uint32_t scanned_axes;
    uint32_t exchanged_axes; /* along which they look up others at a distance, over and over: networks */
    uint32_t stored_axes;    /* along which the buffers lie that members are stored in */
    uint32_t loaded_axes;    /* and those that members are read from */
    bool is_spread;          /* stored_axes are those of what members are pointers or masks of */
    bool is_under_way;       /* a member is, between wgmma and its wait */
    bool is_accessed;        /* a member is what a memory operation loads or stores, or its pointer or mask */
    bool is_updated;         /* by atomics, an element at a time */
    int access_depth;        /* loops around the innermost of these */
    int64_t accesses;        /* how often members are loaded and stored */
    bool is_voted;           /* the layout is what its accesses prefer */
    bool is_masks;           /* nothing else: they go where what they mask is */
    bool is_broadcast;       /* along another dimension, to a larger tile */
    bool is_summed;          /* by reductions in a loop, and accessed outside of it */
    bool is_loaded_apart;    /* an element at a time, whose places are no neighbours */
    uint32_t apart_axes;     /* along which such members of other groups are broadcast to these */
    bool is_cheap;           /* to make in any layout: the value has no group */
    int64_t index_work; /* instructions that divide integers and compute with quotients, for each element */
    bool is_in_loop;    /* some of that, or of what else makes members, is */
    int64_t loop_work;  /* operations in loops that make an element of the members */
    int *edges;         /* at the group, by number; in a row for all groups */
    int edge_count;
    TT_VECTOR(int) weak; /* accesses of members that do not mind, by number */
} Group;

/* An operation that carries layouts from one group to another. */
typedef struct Edge {
    Op *op;
    int operand;
    Group *from, *to;
    int depth;     /* loops around it */
    int64_t times; /* it runs, about */
} Edge;

/* Numbers that are to be looked at. */
typedef struct Agenda {
    uint64_t *words;
    int count;
} Agenda;

/* Ways to follow an edge, the surest first. */
enum { EXACT_FORWARD, EXACT_BACKWARD, WIDENING, EXCHANGING, EDGE_WAYS };

struct LayoutGroups {
    Module *module;
    const GpuOptions *options;
    Arena *arena;
    AxisInfos *axis_infos;
    bool is_weak; /* those that do not mind have been asked, too */
    Map groups;   /* Value* -> Group* */
    Map sizes;    /* see tt_cheap_size */
    TT_VECTOR(Group *) all;
    TT_VECTOR(Edge) edges;
    TT_VECTOR(Op *) weak; /* accesses that do not mind */
    Agenda to_follow[EDGE_WAYS],
        to_access;  /* edges, and weak accesses, at groups that have got a layout since */
    int first_open; /* groups before it have one */
};

/* Groups, edges, and the votes of the accesses that mind. No group has a layout yet. */
LayoutGroups *groups_collect(const Function *function, const GpuOptions *options, Arena *arena);
/* The votes of the others. */
void groups_add_weak_votes(LayoutGroups *g, const Function *function);

static inline Group *groups_root(Group *group)
{
    while (group->parent) {
        if (group->parent->parent)
            group->parent = group->parent->parent;
        group = group->parent;
    }
    return group;
}

/* NULL for scalars and for what is cheap. */
Group *groups_of(const LayoutGroups *g, const Value *value);

/* Gives a group its layout: what that may decide is on the agendas then. */
void groups_place(LayoutGroups *g, Group *group, const LinearLayout *layout);
/* The next number on it, from `from` on; -1: none. */
int groups_next_of(const Agenda *agenda, int from);
void groups_strike(Agenda *agenda, int number);

/* Does it load, store or update a tile? */
bool groups_is_access(const Op *op);
/* Does such an access mind in which layout it runs? */
bool groups_minds(const LayoutGroups *g, const Op *op, Preference *preference);
/* What it loads or stores. */
const Value *groups_accessed_value(const Op *op);
/* Does the edge lead to what a loop adds up, a reduction's result or a tile in another shape, and are accesses of that
 * outside of the loop? */
bool groups_sums_in_loop(const Edge *edge);
