"""make_documents.py: writes the files beside it, with pyarrow, polars and duckdb. The texts are `TEXTS`, which
test_train_documents.c has too."""
import os

import duckdb
import polars
import pyarrow as pa
import pyarrow.parquet as pq

HERE = os.path.dirname(os.path.abspath(__file__))
TEXTS = ["one", None, "", "the \u00e9t\u00e9", "the \u00e9t\u00e9 and the winter", "one", None, "line\nbreak", "x" * 300, "one"]
TABLE = pa.table({"id": list(range(len(TEXTS))), "text": TEXTS, "tags": [["a"] * (i % 3) for i in range(len(TEXTS))],
                  "meta": [None if t is None else {"text": t} for t in TEXTS]})


def path(name):
    return os.path.join(HERE, name + ".parquet")


for encoding in ("DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"):
    pq.write_table(TABLE.select(["text"]), path("arrow_" + encoding.lower()), use_dictionary=False, column_encoding=encoding,
                   compression="snappy", data_page_version="2.0", store_schema=False)
pq.write_table(TABLE, path("arrow_dictionary"), compression="gzip", row_group_size=4, store_schema=False)
pq.write_table(TABLE.select(["text"]), path("arrow_lz4"), compression="lz4", use_dictionary=False, store_schema=False)
polars.DataFrame({"text": TEXTS}).write_parquet(path("polars"), compression="zstd")
frame = TABLE.select(["text"])
duckdb.sql(f"COPY frame TO '{path('duckdb')}' (FORMAT parquet, PARQUET_VERSION V2, COMPRESSION uncompressed)")
