/* Count how often an emulated image runs each block of instructions, and how often it jumps on from its end: a plugin of QEMU.
 *
 * The file named by its first argument receives, for each block that ran, its first address, its runs and its jumps, and below a
 * line for each instruction, as QEMU disassembles it. The functions declared here are those that every version of QEMU's
 * interface has, from 6.0 to 10: QEMU's qemu-plugin.h is in no package. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORTED __attribute__((visibility("default")))

typedef uint64_t plugin_id;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id, void (*)(plugin_id, struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *, void (*)(unsigned, void *), int flags, void *);
void qemu_plugin_register_atexit_cb(plugin_id, void (*)(plugin_id, void *), void *);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
char *qemu_plugin_insn_disas(const struct qemu_plugin_insn *);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *);

typedef struct Block {
  struct Block *next;
  uint64_t first, end, runs, jumps;
  size_t count;
  char **text;
} Block;

static Block *blocks, *previous;
static const char *out = "blocks.txt";

static void run(unsigned cpu, void *data) {
  Block *const block = data;
  ++block->runs;
  if (previous && previous->end != block->first) ++previous->jumps;
  previous = block;
}

static void translate(plugin_id id, struct qemu_plugin_tb *tb) {
  Block *const block = calloc(1, sizeof *block);
  if (!block) abort();
  block->count = qemu_plugin_tb_n_insns(tb);
  block->text = calloc(block->count, sizeof *block->text);
  if (!block->text) abort();
  for (size_t i = 0; i < block->count; ++i) {
    struct qemu_plugin_insn *const insn = qemu_plugin_tb_get_insn(tb, i);
    if (i == 0) block->first = qemu_plugin_insn_vaddr(insn);
    block->end = qemu_plugin_insn_vaddr(insn) + qemu_plugin_insn_size(insn);
    block->text[i] = qemu_plugin_insn_disas(insn);
  }
  block->next = blocks;
  blocks = block;
  qemu_plugin_register_vcpu_tb_exec_cb(tb, run, 0, block);
}

static void write_blocks(plugin_id id, void *data) {
  FILE *const file = fopen(out, "w");
  if (!file) return;
  for (const Block *block = blocks; block; block = block->next) {
    if (!block->runs) continue;
    fprintf(file, "%" PRIx64 " %" PRIx64 " %" PRIu64 " %" PRIu64 "\n", block->first, block->end, block->runs, block->jumps);
    for (size_t i = 0; i < block->count; ++i) fprintf(file, "\t%s\n", block->text[i]);
  }
  fclose(file);
}

EXPORTED int qemu_plugin_version = PLUGIN_VERSION;

EXPORTED int qemu_plugin_install(plugin_id id, const void *info, int argc, char **argv) {
  if (argc > 0 && strncmp(argv[0], "out=", 4) == 0) out = strdup(argv[0] + 4);
  qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
  qemu_plugin_register_atexit_cb(id, write_blocks, NULL);
  return 0;
}
