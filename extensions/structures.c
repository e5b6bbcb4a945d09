/* SPDX-License-Identifier: Apache-2.0 */
/* Walks over lists and trees of the traced program. A link is read where it is, checked, and not
 * followed for ever: what is longer than its limit counts as that long. */
#include "clew.h"

#define LIST_MAX 512 /* What the fuel of a hit is enough for. */
#define TREE_OPEN_MAX 64
#define TREE_MAX 512

static const void* link_of(const void* node, u64 offset) {
  const void* next = NULL;
  clew_read(&next, sizeof next, (const char*)node + offset);
  return next;
}

/* Nodes of a list that ends with a null link, or where it began; `next` is the offset of the link
 * in a node. */
u64 list_length(const void* first, u64 next) {
  u64 length = 0;
  const void* node = first;
  while (node != NULL && length < LIST_MAX) {
    ++length;
    node = link_of(node, next);
    if (node == first) break;
  }
  return length;
}

/* The place (from 1) of the first node whose 8 bytes at `offset` (an integer of 64 bits, or a
 * pointer) are `value`; 0 when none has it.
 */
u64 list_find(const void* first, u64 next, u64 offset, u64 value) {
  const void* node = first;
  for (u64 place = 1; node != NULL && place <= LIST_MAX; ++place) {
    u64 found = 0;
    if (!clew_read(&found, sizeof found, (const char*)node + offset)) return 0;
    if (found == value) return place;
    node = link_of(node, next);
    if (node == first) break;
  }
  return 0;
}

static const void* open_nodes[TREE_OPEN_MAX];

/* Nodes of a binary tree; `left` and `right` are the offsets of the links in a node. */
u64 tree_size(const void* root, u64 left, u64 right) {
  u64 size = 0;
  u32 open = 0;
  if (root != NULL) open_nodes[open++] = root;
  while (open > 0 && size < TREE_MAX) {
    const void* node = open_nodes[--open & (TREE_OPEN_MAX - 1)];
    ++size;
    const void* children[2] = {link_of(node, left), link_of(node, right)};
    for (u32 i = 0; i < 2; ++i)
      if (children[i] != NULL && open < TREE_OPEN_MAX) open_nodes[open++] = children[i];
  }
  return size;
}
