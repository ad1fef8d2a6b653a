#include "machine.h"
#include <string.h>
#include <unistd.h>
#include "base/sysinfo.h"
#include "base/topology.h"

enum { READ_BYTES = 1 << 30, LOOK_BYTES = 64 << 20 };

static const double LEAST_SCALING = 1.9, MOST_SPREAD = 1.1, LOOK_S = 0.002;

/* The last part of the file: weights, and of a large one not what a cache holds. */
static uint64_t measured_from(const struct machine *m)
{
    const uint64_t size = file_map_size(m->weights), n = size < READ_BYTES ? size : READ_BYTES;
    return file_load_border(m->weights, size - n);
}

uint64_t machine_bytes(const struct machine *m)
{
    return file_map_size(m->weights) - measured_from(m);
}

/* The engine reads memory of its own, not the file's: so does the measurement. */
static int read_weights(const struct machine *m, struct err *e)
{
    const uint64_t from = measured_from(m), to = file_load_border(m->weights, file_map_size(m->weights));
    bool cached;
    const int fd = file_open_uncached(file_map_path(m->weights), &cached);
    if (fd < 0) return err_set(e, ERR_IO, "%s: cannot open again", file_map_path(m->weights));
    int rc = file_load_begin(m->weights, from, to, true, e);
    if (!rc) rc = file_load_read(m->weights, fd, from, to, e);
    file_load_end(m->weights, from, to);
    close(fd);
    return rc;
}

/* Threads as the engine's. */
static int start_threads(struct machine *m, const struct ds4_model_info *engine, struct err *e)
{
    struct topology t;
    const int n = engine->threads > engine->threads_decode ? engine->threads : engine->threads_decode;
    topology_read(&t);
    int rc = pool_create_on(engine->numa_nodes > 1 ? &t : NULL, n, &m->pool, e);
    topology_free(&t);
    for (int i = 0; i < 2 && !rc && n > 1; i++) rc = pool_create(i + 1, &m->apart[i], e);
    return rc;
}

int machine_open(struct machine *m, const char *model_file, const struct ds4_model_info *engine, struct err *e)
{
    *m = (struct machine){.isa = QUANT_SCALAR, .readers = engine->threads_decode};
    for (int i = 0; i < QUANT_ISA_COUNT; i++)
        if (!strcmp(quant_isa_name((enum quant_isa)i), engine->isa)) m->isa = (enum quant_isa)i;
    int rc = file_map_open(model_file, &m->weights, e);
    if (!rc && engine->weights_read) rc = read_weights(m, e);
    if (!rc) rc = start_threads(m, engine, e);
    if (rc) machine_close(m);
    return rc;
}

void machine_close(struct machine *m)
{
    pool_free(m->pool);
    for (int i = 0; i < 2; i++) pool_free(m->apart[i]);
    file_map_close(m->weights);
    *m = (struct machine){0};
}

static void take(const struct machine *m, struct machine_speed *s, double v)
{
    if (!m->n || v < s->least) s->least = v;
    if (!m->n || v > s->most) s->most = v;
}

static int measure_weights(const struct machine *m, double *v, struct err *e)
{
    const uint64_t from = measured_from(m), n = machine_bytes(m);
    pool_limit(m->pool, m->readers);
    const int rc = measure_reading(m->pool, file_map_data(m->weights) + from, n, v, e);
    pool_limit(m->pool, pool_threads(m->pool));
    return rc;
}

/* Every pass reads other bytes of the measured part of the file, which no cache holds. */
int machine_look_memory(struct machine *m, double *bytes_per_s, struct err *e)
{
    const uint64_t from = measured_from(m), all = machine_bytes(m);
    const uint64_t n = all < LOOK_BYTES ? all : LOOK_BYTES;
    int rc = 0;
    pool_limit(m->pool, m->readers);
    *bytes_per_s = 0;
    for (int way = 0; way < READING_WAYS && !rc; way++) {
        const uint64_t at = m->looks++ % (all / n) * n;
        double v = 0;
        rc = measure_reading_once(m->pool, (enum reading_way)way, file_map_data(m->weights) + from + at, n, &v, e);
        if (v > *bytes_per_s) *bytes_per_s = v;
    }
    pool_limit(m->pool, pool_threads(m->pool));
    return rc;
}

int machine_look_peak(const struct machine *m, enum peak_kind kind, double *per_s, struct err *e)
{
    return measure_peak(m->pool, m->isa, kind, LOOK_S, per_s, e);
}

/* Threads that share nothing: what is missing at 2 was taken by another program, or by a core that both are on. */
static int measure_scaling(const struct machine *m, double *v, struct err *e)
{
    double one = 0, two = 0;
    int rc = measure_peak(m->apart[0], m->isa, PEAK_F32, MEASURE_S, &one, e);
    if (!rc) rc = measure_peak(m->apart[1], m->isa, PEAK_F32, MEASURE_S, &two, e);
    *v = one > 0 ? two / one : 0;
    return rc;
}

int machine_measure(struct machine *m, struct err *e)
{
    double v;
    int rc = measure_weights(m, &v, e);
    if (!rc) take(m, &m->read, v);
    for (int k = 0; k < PEAK_KINDS && !rc; k++) {
        if (!peak_loop(m->isa, (enum peak_kind)k)) continue;
        rc = measure_peak(m->pool, m->isa, (enum peak_kind)k, MEASURE_S, &v, e);
        if (!rc) take(m, &m->peak[k], v);
    }
    if (!rc && m->apart[1]) rc = measure_scaling(m, &v, e);
    if (!rc && m->apart[1]) take(m, &m->scaling, v);
    if (!rc) m->n++;
    return rc;
}

void machine_print(FILE *out, const struct machine *m)
{
    struct sysinfo s;
    sysinfo_read("", &s);
    fprintf(out,
            "machine: %d threads (%d decode) on %d cores, %s; memory read %.2f GB/s (%.2f to %.2f in %d measurements); "
            "peaks in "
            "thousand million multiply-adds/s: int8 %.1f (from %.1f), f32 %.1f (from %.1f)",
            pool_threads(m->pool), m->readers, s.cores ? s.cores : s.processors, quant_isa_name(m->isa),
            m->read.most * 1e-9, m->read.least * 1e-9, m->read.most * 1e-9, m->n, m->peak[PEAK_INT8].most * 1e-9,
            m->peak[PEAK_INT8].least * 1e-9, m->peak[PEAK_F32].most * 1e-9, m->peak[PEAK_F32].least * 1e-9);
    if (peak_loop(m->isa, PEAK_TILES))
        fprintf(out, ", int8 by tiles %.1f (from %.1f)", m->peak[PEAK_TILES].most * 1e-9,
                m->peak[PEAK_TILES].least * 1e-9);
    if (m->apart[1]) fprintf(out, "; two threads do %.2f of one (from %.2f)", m->scaling.most, m->scaling.least);
    fputc('\n', out);
    if (m->read.most > MOST_SPREAD * m->read.least)
        fputs("machine: WARNING: measurements of the memory lie more than a tenth apart: run this again\n", out);
    if (m->apart[1] && m->scaling.most < LEAST_SCALING)
        fprintf(out,
                "machine: WARNING: two threads do less than %.1f of one: other programs are at work, or both are on "
                "one core\n",
                LEAST_SCALING);
}
