# ds4: native inference engine. `make help` lists the targets.
# BUILD is the output folder; MODE selects the flags (release, debug, asan, tsan, fuzz).
MODE  ?= release
BUILD ?= build/$(MODE)
CC    ?= cc

WARN   := -Wall -Wextra -Werror -Wshadow -Wpointer-arith -Wstrict-prototypes -Wmissing-prototypes -Wwrite-strings -Wvla -Wno-unused-parameter -Wno-missing-field-initializers -Wno-pass-failed
# No fast-math and no contraction anywhere: the order and rounding of every sum is part of docs/numerics.md.
CFLAGS_COMMON := -std=c11 -D_GNU_SOURCE -Iinclude -Isrc -Icmd -ffp-contract=off -fno-math-errno -pthread -MMD -MP $(WARN)
# Lines, but no variables: to follow these through unrolled kernels is half of the time to compile them.
CFLAGS_release := -O2 -g1
CFLAGS_debug   := -O0 -g3
CFLAGS_asan    := -O1 -g1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all
CFLAGS_tsan    := -O1 -g -fno-omit-frame-pointer -fsanitize=thread
CFLAGS_fuzz    := -O1 -g1 -fno-omit-frame-pointer -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
LDFLAGS_asan   := -fsanitize=address,undefined
LDFLAGS_tsan   := -fsanitize=thread
LDFLAGS_fuzz   := -fsanitize=fuzzer,address,undefined
# Optional: reads of many rows at once (src/rowtable). LIBURING= builds without it.
LIBURING ?= $(shell printf '\043include <liburing.h>\n' | $(CC) -E -x c - >/dev/null 2>&1 && echo yes)
ifneq ($(LIBURING),)
CFLAGS_COMMON += -DHAVE_LIBURING
LIBS_uring := -luring
endif
ALL_CFLAGS  := $(CFLAGS_COMMON) $(CFLAGS_$(MODE)) $(CFLAGS)
ALL_LDFLAGS := $(LDFLAGS_$(MODE)) $(LDFLAGS) -pthread
LIBS := -lpcre2-8 -lm $(LIBS_uring)

# SRC_DIRS and TESTS can be narrowed on the command line while one part is being worked on.
SRC_DIRS ?= $(wildcard src/* src/*/* src/*/*/*)
TESTS    ?= $(wildcard tests/unit/test_*.c tests/device/test_*.c tests/model/test_*.c tests/e2e/test_*.c)

LIB_SRC  := $(sort $(foreach d,$(SRC_DIRS),$(wildcard $(d)/*.c)))
LIB_OBJ  := $(LIB_SRC:%.c=$(BUILD)/%.o) $(if $(filter src/serve,$(SRC_DIRS)),$(BUILD)/src/serve/page_files.o)
LIB      := $(BUILD)/libds4.a
SUP_SRC  := $(wildcard tests/support/*.c)
SUP_OBJ  := $(SUP_SRC:%.c=$(BUILD)/%.o)
SUP_LIB  := $(BUILD)/libsupport.a
TEST_BIN := $(TESTS:%.c=$(BUILD)/%)

# A program is a folder of cmd/ with a main.c; its other files are also linked by the fuzz targets. cmd/common is part of
# every program.
PROGRAMS := $(patsubst cmd/%/main.c,%,$(wildcard cmd/*/main.c))
PROG_BIN := $(PROGRAMS:%=$(BUILD)/%)
CMD_LIB  := $(BUILD)/libcmd.a
CMD_OBJ  := $(patsubst %.c,$(BUILD)/%.o,$(filter-out %/main.c,$(wildcard cmd/*/*.c)))
LIBS_ds4      := -ledit
LIBS_ds4-gguf := -ljansson
LIBS_ds4-server := -levent_core -ljansson
LIBS_test_diagnostics := -ljansson
LIBS_test_failures := -levent_core
LIBS_test_http := -levent_core
LIBS_test_http_hostile := -levent_core
LIBS_bench_http := -levent_core
LIBS_test_answer := -ljansson
LIBS_test_answer_random := -ljansson
LIBS_test_answer_state := -ljansson
LIBS_test_chat := -lvterm
LIBS_test_check := -ljansson

# Manual pages are what the programs say of themselves.
MAN    := $(PROGRAMS:%=$(BUILD)/man/%.1)
PREFIX ?= /usr/local

# Libraries that tests put under programs.
PRELOADS := $(patsubst %.c,$(BUILD)/%.so,$(wildcard tests/preload/*.c))

BENCH_BIN := $(patsubst %.c,$(BUILD)/%,$(wildcard bench/*.c))
# A fuzz target is one file with LLVMFuzzerTestOneInput. With replay.c it runs its corpus as a plain test; with clang it fuzzes.
FUZZ         := $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
REPLAY_BIN   := $(FUZZ:%=$(BUILD)/tests/fuzz/replay_%)
FUZZ_BUILD   := build/fuzz
FUZZ_SECONDS ?= 10
# 0: another one each time.
FUZZ_SEED    ?= 0

# Targets that build and run start one job per processor unless -j says otherwise.
JOBS    ?= $(shell getconf _NPROCESSORS_ONLN)
SUBMAKE  = $(MAKE) --no-print-directory $(if $(filter -j%,$(MAKEFLAGS)),,-j$(JOBS)) MODE=$(MODE) BUILD=$(BUILD)

.PHONY: peer clients all debug asan tsan lib tests replays programs man install uninstall benches deps test cross-aarch64 nightly demo bench fuzz fuzzers check-includes oracle format help clean
.SECONDARY:
all: programs
debug asan tsan: ; $(MAKE) MODE=$@ all
lib: $(LIB)
tests: $(TEST_BIN) $(PRELOADS)
replays: $(REPLAY_BIN)
programs: $(PROG_BIN)
benches: $(BENCH_BIN)

# ---- building ----

$(LIB): $(LIB_OBJ)
	@mkdir -p $(@D); rm -f $@; $(AR) rcs $@ $^
$(CMD_LIB): $(CMD_OBJ)
	@mkdir -p $(@D); rm -f $@; $(AR) rcs $@ $^
$(SUP_LIB): $(SUP_OBJ)
	@mkdir -p $(@D); rm -f $@; $(AR) rcs $@ $^

# The web page is a part of the program.
PAGE := $(wildcard src/serve/page/*)
$(BUILD)/src/serve/page_files.c: tools/embed.sh $(PAGE)
	@mkdir -p $(@D)
	@tools/embed.sh $(PAGE) >$@.part && mv $@.part $@
$(BUILD)/src/serve/page_files.o: $(BUILD)/src/serve/page_files.c
	$(CC) $(ALL_CFLAGS) -c $< -o $@

# Files named *_avx2.c, *_avxvnni.c, *_avx512.c and *_amx.c hold AVX2, AVX-VNNI, AVX-512 and AMX kernels; they are called only where the
# processor has the instructions, and are empty elsewhere. No fuzz target reaches them, and clang needs minutes for them under its
# sanitizers: there they are only made, without any, and as fast as may be.
KERNELS_fuzz := -fno-sanitize=all -O0
# ASAN judges every access of theirs. What is left out would be seen by it too, at the access (NULL, an object's size), or cannot
# happen (addresses that wrap), and is half of the time to compile them.
KERNELS_asan := -fno-sanitize=null,pointer-overflow,object-size
TARGET := $(shell $(CC) -dumpmachine)
ifneq ($(filter x86_64-% amd64-%,$(TARGET)),)
AVX512 := -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vbmi -mavx512vnni -mgfni -mprefer-vector-width=512
$(BUILD)/%_avx2.o $(BUILD)/%_avxvnni.o $(BUILD)/%_avx512.o $(BUILD)/%_amx.o: ISA_FLAGS := -mavx2 -mfma -mf16c $(KERNELS_$(MODE))
$(BUILD)/%_avxvnni.o: ISA_FLAGS += -mavxvnni
$(BUILD)/%_avx512.o $(BUILD)/%_amx.o: ISA_FLAGS += $(AVX512)
$(BUILD)/%_amx.o: ISA_FLAGS += -mamx-tile -mamx-int8 -mamx-bf16
endif
# Those named *_neon.c hold kernels of 64-bit ARM; NEON itself is part of the architecture.
ifneq ($(filter aarch64-% arm64-%,$(TARGET)),)
$(BUILD)/%_dotprod_neon.o: ISA_FLAGS := -march=armv8.2-a+dotprod
$(BUILD)/%_i8mm_neon.o: ISA_FLAGS := -march=armv8.2-a+dotprod+i8mm
endif
# Vectors wider than the processor's are split by the compiler; they are never passed to a real function.
$(BUILD)/%_scalar.o $(BUILD)/%_kernels_neon.o: ISA_FLAGS := -Wno-psabi
# Tests of whole programs find them in the folder that the tests were built in.
$(BUILD)/tests/%.o: ISA_FLAGS += -DTEST_BUILD='"$(BUILD)"'
$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(ISA_FLAGS) -c $< -o $@

.SECONDEXPANSION:
objects_of = $(patsubst %.c,$(BUILD)/%.o,$(wildcard $(1)/*.c))
$(PROG_BIN): $(BUILD)/%: $$(call objects_of,cmd/%) $$(call objects_of,cmd/common) $(LIB)
	$(CC) $(ALL_LDFLAGS) $^ -o $@ $(LIBS_$*) $(LIBS)

$(BUILD)/tests/preload/%.so: tests/preload/%.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_COMMON) -O2 -fPIC -shared $< -o $@
$(BUILD)/tests/fuzz/replay_%: $(BUILD)/tests/fuzz/fuzz_%.o $(BUILD)/tests/fuzz/replay.o $(CMD_LIB) $(SUP_LIB) $(LIB)
	$(CC) $(ALL_LDFLAGS) $^ -o $@ -ljansson $(LIBS)
$(BUILD)/tests/fuzz/fuzz_%: $(BUILD)/tests/fuzz/fuzz_%.o $(CMD_LIB) $(SUP_LIB) $(LIB)
	$(CC) $(ALL_LDFLAGS) $^ -o $@ -ljansson $(LIBS)
$(BUILD)/tests/%: $(BUILD)/tests/%.o $(SUP_LIB) $(LIB)
	$(CC) $(ALL_LDFLAGS) $^ -o $@ -lcmocka $(LIBS_$(@F)) $(if $(findstring test_serve,$(@F)),$(LIBS_ds4-server)) $(LIBS)
$(BUILD)/bench/%: $(BUILD)/bench/%.o $(LIB)
	$(CC) $(ALL_LDFLAGS) $^ -o $@ $(LIBS_$(@F)) $(LIBS)

-include $(LIB_OBJ:.o=.d) $(SUP_OBJ:.o=.d) $(CMD_OBJ:.o=.d) $(TEST_BIN:=.d) $(BENCH_BIN:=.d) $(PROGRAMS:%=$(BUILD)/cmd/%/main.d) $(FUZZ:%=$(BUILD)/tests/fuzz/fuzz_%.d)

# ---- installing ----

man: $(MAN)
$(MAN): $(BUILD)/man/%.1: $(BUILD)/%
	@mkdir -p $(@D)
	$< --help man >$@.new && mv $@.new $@

# Below DESTDIR, if given, as for a package.
BIN_DIR = $(DESTDIR)$(PREFIX)/bin
MAN_DIR = $(DESTDIR)$(PREFIX)/share/man/man1
install: $(PROG_BIN) $(MAN)
	mkdir -p "$(BIN_DIR)" "$(MAN_DIR)"
	install $(PROG_BIN) "$(BIN_DIR)"
	install -m 644 $(MAN) "$(MAN_DIR)"
uninstall:
	for p in $(PROGRAMS); do rm -f "$(BIN_DIR)/$$p" "$(MAN_DIR)/$$p.1"; done

# ---- checking ----

deps: ; @tools/deps.sh
check-includes: ; @tools/check_includes.sh

# Tests without a GPU or a big model; tests/run.sh ends with the line "N passed, N failed".
test: deps check-includes
	@+$(SUBMAKE) TESTS="$(TESTS)" programs tests replays
	@tools/check_symbols.sh $(CMD_LIB) $(SUP_LIB) $(LIB)
	@tests/run.sh $(TEST_BIN) $(REPLAY_BIN)
# What is too slow for every change: other programs beside ours, the clients of others, the demo model on all its tasks, what models say
# to the server cut in all ways, slow clients, the tests again with all sanitizers, minutes of eight clients at once with them, and a minute
# per fuzz target.
nightly: deps check-includes
	@+$(MAKE) MODE=release BUILD=build/release test
	@+$(MAKE) MODE=release BUILD=build/release peer
	@+$(MAKE) MODE=release BUILD=build/release clients
	@+$(MAKE) CC=clang BUILD=build/clang-release programs tests benches
	build/release/tests/model/test_demo_oracle all
	build/release/tests/e2e/test_demo_accuracy all
	build/release/tests/unit/test_serve_outputs all
	build/release/tests/e2e/test_server_hostile all
	@+$(MAKE) MODE=asan BUILD=build/asan test
	build/asan/tests/e2e/test_server_soak 60
	@+$(MAKE) MODE=tsan BUILD=build/tsan test
	build/tsan/tests/e2e/test_server_soak 60
	@+$(MAKE) FUZZ_SECONDS=60 fuzz

# The kernels of 64-bit ARM on another machine: those parts that have some, and their quick tests, in an emulator.
CROSS_BUILD := build/aarch64
CROSS_TESTS := $(wildcard tests/unit/test_quant_*.c) $(addprefix tests/device/test_,cpu_attention.c cpu_kernels.c device_state.c ref_units.c)
cross-aarch64:
	@tools/deps.sh cross
	@+$(SUBMAKE) CC=aarch64-linux-gnu-gcc AR=aarch64-linux-gnu-ar BUILD=$(CROSS_BUILD) LIBS=-lm TESTS="$(CROSS_TESTS)" SUP_SRC="tests/support/quant_vectors.c tests/support/tiles_model_slabs_amx.c" \
		SRC_DIRS="src/base src/quant src/gguf src/experts src/device src/device/ref src/device/cpu" tests
	@tests/run_aarch64.sh $(CROSS_TESTS:%.c=$(CROSS_BUILD)/%)

# ds4 against other programs, which npm installs into tests/peer/node_modules (docs/PEERS.md); PEER_SHAPES=3: three models of a writer.
peer: deps
	@+$(SUBMAKE) programs $(BUILD)/tests/peer/encode $(BUILD)/tests/peer/write_deepseek4 $(BUILD)/tests/peer/write_qwen38 $(BUILD)/tests/peer/write_types
	@tests/peer/run.sh $(BUILD) $(PEER_SHAPES)
# ds4-server with client libraries, a browser and coding agents (docs/clients.md); CLIENTS=sdk, recorded, page or agents: a part.
clients: deps
	@+$(SUBMAKE) $(BUILD)/ds4-server
	@tests/clients/run.sh $(BUILD) $(CLIENTS)
fuzz:
	@tools/deps.sh clang
	@+$(MAKE) --no-print-directory MODE=fuzz CC=clang BUILD=$(FUZZ_BUILD) fuzzers
	@tests/fuzz/fuzz_all.sh $(FUZZ_BUILD)/tests/fuzz $(FUZZ_SECONDS) $(FUZZ_SEED) $(FUZZ)
fuzzers: $(FUZZ:%=$(BUILD)/tests/fuzz/fuzz_%)

# ---- showing ----

# Converts the small model that comes with the sources, lets it answer three prompts, then asks for yours.
demo: deps
	@+$(SUBMAKE) programs build/demo.gguf
	@tools/demo.sh $(BUILD)/ds4 build/demo.gguf
build/demo.gguf: models/demo/model.safetensors models/demo/config.json models/demo/tokenizer.json | $(BUILD)/ds4-gguf
	@mkdir -p $(@D)
	$(BUILD)/ds4-gguf convert --overwrite models/demo -o $@
bench: deps
	@+$(SUBMAKE) benches
	@echo "built: $(BENCH_BIN)"

# Golden logits of an independent float64 implementation (Python with numpy) for the models of tests/support/oracle_cases.c
# and the demo model.
PYTHON ?= python3
oracle: $(BUILD)/tests/oracle/write_models build/demo.gguf
	tests/oracle/make_goldens.sh $^ build/oracle $(PYTHON)

format: ; clang-format -i $(shell git ls-files '*.c' '*.h')
clean: ; rm -rf build

help:
	@echo "make            all programs, optimised, in build/release (MODE=debug, asan or tsan: other flags and folder)"
	@echo "make install    programs and manual pages to PREFIX=/usr/local below DESTDIR=; make uninstall removes them"
	@echo "make deps       check for the libraries; install them where the package manager allows, else say how"
	@echo "make test       build and run all tests (MODE=asan make test: with sanitizers; TESTS=file.c: some of them)"
	@echo "make cross-aarch64    the kernels for 64-bit ARM: built with a cross compiler, tested in an emulator (Debian packages)"
	@echo "make demo       convert the demo model and talk to it"
	@echo "make bench      build the benchmarks in bench/"
	@echo "make fuzz       fuzz every reader of outside data, FUZZ_SECONDS=10 each, from FUZZ_SEED (needs clang)"
	@echo "make peer       compare with another engine and another tokenizer (needs node; PEER_SHAPES=3: fewer models)"
	@echo "make clients    ds4-server with client libraries, the page in a browser, coding agents (needs node; CLIENTS=sdk, recorded, page, agents)"
	@echo "make nightly    tests plain, the peers, the clients, an optimised build with clang, the demo model on all its tasks, what models say cut in all ways, tests with asan and with tsan, minutes of load with both, a minute per fuzz target"
	@echo "make oracle     recompute the golden logits of the small test models and the demo model (PYTHON=python3 with numpy)"
	@echo "make check-includes   includes that point upward"
	@echo "make format     clang-format on all sources          make clean   remove build/"
