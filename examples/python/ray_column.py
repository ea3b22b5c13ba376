"""A column of a Ray dataset, asked about row by row: pip install "ray[data]" rlmd

    python3 ray_column.py reviews.csv text 'Is this a complaint? yes or no'

Each actor has one rlmd; `concurrency` says how many there are. They wait for models and compute
little, so that several share a core.
"""

import sys

import ray

from rlmd import RLM


class Ask:
    def __init__(self, column, question):
        self.column, self.question, self.rlm = column, question, RLM(max_cost=0.01)

    def __call__(self, batch):
        answers = self.rlm.map([f"{self.question}\n\n{text}" for text in batch[self.column]],
                               return_exceptions=True)
        return {**batch, "answer": [str(answer) for answer in answers]}


if __name__ == "__main__":
    path, column, question = sys.argv[1:]
    told = ray.data.read_csv(path).map_batches(Ask, fn_constructor_args=(column, question),
                                               concurrency=(1, 2), num_cpus=0.25)
    print(told.to_pandas().to_csv(index=False), end="")
