"""What each suite asks, its headline, and what a reader must know to judge the figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from benchmarks.report.figure_row import Figures
from benchmarks.steady.rows import steady_headline


@dataclass(frozen=True)
class SuiteNote:
    """`headline` is the one line of the summary; `reading` the paragraph above the suite's table."""

    question: str
    headline: Callable[[Figures], str]
    reading: str


def _queries_headline(figures: Figures) -> str:
    growth = figures["growth_100"]
    cost = "" if growth is None else f"; 100 queries take {growth:.1f}x the time of one"
    return f"20 queries run {figures['ratio_spark_20']:.0f}x as fast as on Spark{cost}"


def _multiway_headline(figures: Figures) -> str:
    ratios = [case["ratio_spark"] for case in figures["by_relations"].values()]
    return f"{min(ratios):.0f}x to {max(ratios):.0f}x as fast as Spark"


def _tpch_headline(figures: Figures) -> str:
    case = figures["ten"]
    return f"ten queries: {case['speedup']:.1f}x faster and {case['bytes_ratio']:.1f}x smaller than one by one"


def _materialize_headline(figures: Figures) -> str:
    cases = figures["cases"].values()
    shipped, seconds = (
        sum(case["optimized"][key] < case["flat"][key] for case in cases) for key in ("rows_shipped", "seconds")
    )
    return f"fewer rows shipped than by flat plans in {shipped} of {len(cases)} joins, less time in {seconds}"


def _adhoc_headline(figures: Figures) -> str:
    rate = (
        f"{figures['requests_per_s']} creates and drops a second cost {1 - figures['throughput_ratio']:.0%} throughput"
    )
    return f"{rate}; {figures['wrong_results']} of {figures['queries_checked']:,} queries wrong"


def _skew_headline(figures: Figures) -> str:
    worst = figures["imbalance"][max(figures["imbalance"], key=float)]
    return f"slowest unit over mean at the strongest skew: {worst['split']:.2f}, hashed {worst['hash']:.1f}"


def _partition_headline(figures: Figures) -> str:
    tpch = figures["tpch"]
    return (
        f"14 TPC-H queries ship {tpch['shipped_ratio']:.1f}x fewer bytes and take {tpch['time_ratio']:.2f}x less time"
    )


def _placement_headline(figures: Figures) -> str:
    case = figures["cases"]["8q_16p_128g"]
    near = "not within 5%" if case["seconds_near"] is None else f"within 5% of the bound after {case['seconds_near']} s"
    return f"8 queries, 16 partitions, 128 key groups: {near}"


NOTE_BY_SUITE: Mapping[str, SuiteNote] = {
    "single": SuiteNote(
        "How fast is one join of two streams?",
        lambda figures: (
            f"{figures['ratio_spark']:.0f}x as fast as Spark, {figures['ratio_duckdb']:.1f}x slower than "
            "DuckDB in batch"
        ),
        "Dovetail is the best of its runs; Spark ran once per batch size, and its best size counts. On RocksDB Spark "
        "reached the time limit, so its rate is that of the rows it had finished. «Only reading into Python» is the "
        "floor: the same batches, handed to Python workers that do nothing. It ran in turn with Dovetail.",
    ),
    "queries": SuiteNote(
        "What does each further query cost?",
        _queries_headline,
        "Distinct queries over the same two streams: different keys, windows and selections, drawn from AJoin's "
        "template. Spark runs each as a streaming query of its own, as users would.",
    ),
    "window": SuiteNote(
        "Does a batch take longer when more rows are kept?",
        lambda figures: f"a 300 s window costs {figures['growth_300']:.2f}x the batch time of a 1 s window",
        "Keys are drawn so that a longer window stores more rows but finds no more partners; what grows is state "
        "alone. All windows run there and back, so that none gains from warmer code.",
    ),
    "multiway": SuiteNote(
        "How do joins of three to five streams compare?",
        _multiway_headline,
        "Chains in which every row finds one partner per hop on average. Spark runs a cascade of two-way joins, the "
        "only form it has.",
    ),
    "smallest": SuiteNote(
        "What does a batch cost when there is nothing to do?",
        lambda figures: f"{figures['batch_ms_p50']:.0f} ms; Spark {figures['spark_batch_ms_p50']:.0f} ms",
        "This is the floor of latency: a batch never takes less. Dovetail had a warm-up run, Spark had none.",
    ),
    "ilp": SuiteNote(
        "How good and how quick is the joint optimizer alone? (CLASH, Fig. 9)",
        lambda figures: (
            f"optimum proven for {sum(case['seconds_optimal'] is not None for case in figures['cases'])} of "
            f"{len(figures['cases'])} query sets"
        ),
        "A plan saves against the sum of separately optimized queries. The paper does not say how many tasks a store "
        "has; one is assumed here. With four tasks a store the savings turn negative: the paper's cost then lets each "
        "separate query partition its own copy of a store as it likes, which one shared store cannot.",
    ),
    "adaptive": SuiteNote(
        "Does the plan follow when the data change? (CLASH, Fig. 8)",
        lambda figures: f"8a: {figures['ratio']:.1f}x; 8b: {figures['b']['ratio']:.2f}x against a static plan",
        "The chain R, S, T, U changes at second 15. The two batches after the change still run by the old plan. In 8b "
        "the adaptive plan finds far fewer partial results, but batches are too small for that to show in time.",
    ),
    "tpch-multi": SuiteNote(
        "What does sharing save on TPC-H? (CLASH, Fig. 7)",
        _tpch_headline,
        "Random joins over TPC-H's tables as streams with full history. Most of the gain is sharing as such. Planning "
        "together finds fewer partial results, but on two cores its planning and upkeep cost about as much, and with "
        "ten queries more: plain sharing is faster there.",
    ),
    "materialize": SuiteNote(
        "When does it pay to keep intermediate joins? (MultiStream, Fig. 8)",
        _materialize_headline,
        "Runs in one process, without Spark. Times are those of batches; planning stands apart, because a session "
        "plans in the background. Rows shipped are those between hops; rows that enter the first hop are not counted.",
    ),
    "adhoc": SuiteNote(
        "What happens when queries come and go? (AJoin, SC1 and SC2)",
        _adhoc_headline,
        "Every create and drop goes through REST, and every query is checked for its own lifetime. Latency is as long "
        "as it is because a batch begins when the last has ended.",
    ),
    "skew": SuiteNote(
        "Are partitions equally busy when keys are skewed? (BiStream)",
        _skew_headline,
        "The work of a unit is the rows that probe in it plus the pairs they find. All units run one after another in "
        "one process; the total time is that of all of them.",
    ),
    "theta": SuiteNote(
        "How fast are joins without an equality? (BiStream)",
        lambda figures: (
            f"Band: {figures['rows_per_s']:,} rows/s, {figures['ratio_duckdb']:.1f}x slower than DuckDB in batch"
        ),
        "Spark refuses these joins as streams. Band joins lineitem with itself; its rows are those that BiStream's "
        "selections leave. DuckDB's text is the faster of two spellings (`BETWEEN`; with `ABS` it compares all pairs). "
        "The join-matrix stores what it stores for real.",
    ),
    "aggregates": SuiteNote(
        "What do aggregates over joins cost? (BiStream, Fig. 13)",
        lambda figures: f"factorized {figures['ratio_materialized']:.0f}x faster than with joined rows built",
        "With 1,000 results per input row the same answer comes from factorized steps, from joined rows that are "
        "built, and from Spark's join followed by its aggregation. Where Spark did not finish, its time is expected "
        "from its rate on a part of the rows; that rate differed by a factor of two between two runs of a day.",
    ),
    "placement": SuiteNote(
        "How good is the placement of key groups? (SASPAR, Fig. 8 and 12a)",
        _placement_headline,
        "The solver alone, on generated workloads. «Within 5%» is proven by a bound; accuracy is that bound over the "
        "cost found.",
    ),
    "partition": SuiteNote(
        "What does one shuffle for all queries save? (SASPAR, Fig. 6 and 10)",
        _partition_headline,
        'Rows travel here (`exchange="rows"`), which is not the default; «by references» is. Bytes come from Spark\'s '
        "own shuffle metrics; only the second half of the batches counts, because placements are learned in the first. "
        "On one machine there is no network to save: against shipping once a key (AJoin), placing saves bytes and "
        "costs time. Aggregates ship no tuple at all. In figures of commit dd14e15 «every query for itself» was one "
        "session that shared nothing; since then it is a session per query.",
    ),
    "elastic": SuiteNote(
        "Do units follow the load? (BiStream, Fig. 12)",
        lambda figures: (
            f"units {' -> '.join(map(str, figures['units']))}, {figures['state_rows_moved']} rows moved, "
            f"{figures['results_wrong']} results wrong"
        ),
        "Input that rises, flickers and falls. On two cores more units give no speed, so memory asks for them.",
    ),
    "faults": SuiteNote(
        "What do kills, damage and losses of power cost?",
        lambda figures: (
            f"{figures['driver']['tried']} drivers killed: {figures['driver']['lost']} answers lost, "
            f"{figures['driver']['doubled']} doubled; {figures['damage']['tried']} files damaged: "
            f"{figures['damage']['silent']} silently; safety takes {figures['sync_cost_ratio']}x the time at most"
        ),
        "Drivers die by SIGKILL with their JVM, at moments drawn from a seed: starting, opening, in batches, between a "
        "commit and Spark's own, while queries are created and dropped, while stopping; then they start again on the "
        "same checkpoint. Answers are compared with DuckDB's over the same files, row by row. Times are "
        "medians of pairs.",
    ),
    "hostile": SuiteNote(
        "Who can take the others down?",
        lambda figures: (
            f"{figures['tried']:,} hostile things of {figures['mechanisms']['count']} mechanisms: "
            f"{figures['batches_lost']} batches lost, {figures['neighbours_wrong']} neighbours wrong, "
            f"{figures['culprits_missed']} culprits missed"
        ),
        "Ten good queries run beside everything. A hostile query must be refused with what is wrong, where and what to "
        "do, be stopped alone, or answer what Spark answers in batch; rows, files, acts and requests be contained. "
        "«Not compared» are answers that Spark has no text for, cannot give in a minute, or that come later than the "
        "wave. Limits are those of somebody who serves strangers (a second of work a query and batch). The slowest "
        "batch is any with something hostile in it, searches for a culprit and killed workers included; functions run "
        "in one process without Spark.",
    ),
    "steady": SuiteNote(
        "What does a small batch of hundreds of queries cost, and how does that grow?",
        steady_headline,
        "A batch is a second of event time and follows the one before at once: its time and the CPU of all processes "
        "are those from commit to commit. More buckets come of longer windows over as many times more keys, so a row "
        "finds as many partners among more of them; their number is the one that was counted. The rate that lasts is "
        "the best over batches of one to 32 files that take at most 10 s. A point that would take too long is stopped "
        "and says so. CPU is counted in ticks of 10 ms. The floor is what searches, pairs, answers and new rows of a "
        "batch take if each is nothing but loads from memory. Spark runs joins of two by themselves; the line of the "
        "plot is one of them times the queries.",
    ),
}
