"""A column of a Dask data frame, asked about row by row: pip install "dask[dataframe]" rlmd

    python3 dask_column.py reviews.csv text 'Is this a complaint? yes or no'

Each process of Dask has one rlmd, however many partitions it works on.
"""

import sys

import dask.dataframe
import pandas

from rlmd import RLM


def ask(rows, column, question):
    answers = RLM(max_cost=0.01).map([f"{question}\n\n{text}" for text in rows[column]],
                                     return_exceptions=True)
    return rows.assign(answer=pandas.Series(map(str, answers), index=rows.index, dtype="string"))


if __name__ == "__main__":
    path, column, question = sys.argv[1:]
    table = dask.dataframe.read_csv(path)
    told = table.map_partitions(ask, column, question, meta={**table.dtypes, "answer": "string"})
    print(told.compute().to_csv(index=False), end="")
