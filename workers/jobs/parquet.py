"""Write tables of exports as Parquet, one batch at a time. Only this module uses pyarrow for tables, imported on first
use."""

from __future__ import annotations

import json
from typing import IO, TYPE_CHECKING, Any

from django.contrib.auth.models import User
from django.db.models import QuerySet

from experiments.exchange.image_services import Progress
from experiments.exchange.tables import Table

if TYPE_CHECKING:
    import pyarrow as pa


def write(table: Table, rows: QuerySet[Any], target: IO[bytes], progress: Progress, viewer: User | None = None) -> int:
    """Write the rows, as this person may see them. Return their number."""
    import pyarrow as pa
    from pyarrow import parquet

    schema, count = schema_of(table), 0
    nested = [column.name for column in table.columns if column.kind == "json"]
    with parquet.ParquetWriter(target, schema, compression="zstd") as writer:
        for batch in table.batches(rows, progress, viewer):
            ready = [
                # Nested data without a fixed schema is written as JSON
                # Nested columns replace those of the row.
                row | {name: json.dumps(row[name], ensure_ascii=False) for name in nested}
                for row in batch
            ]
            writer.write_table(pa.Table.from_pylist(ready, schema=schema))
            count += len(batch)
    return count


def schema_of(table: Table) -> pa.Schema:
    import pyarrow as pa

    kinds = {
        "text": pa.string(),
        "whole": pa.int64(),
        "figure": pa.float64(),
        "flag": pa.bool_(),
        "time": pa.timestamp("us", tz="UTC"),
        "texts": pa.list_(pa.string()),
        "json": pa.string(),
    }
    return pa.schema([(column.name, kinds[column.kind]) for column in table.columns])
