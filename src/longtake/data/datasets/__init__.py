"""Public data sets: their official annotation files read from a folder, and their videos found there."""

from longtake.data.datasets.catalog import DATASETS as DATASETS
from longtake.data.datasets.catalog import DataSet as DataSet
from longtake.data.datasets.catalog import dataset_named as dataset_named
from longtake.data.datasets.catalog import names_for as names_for
from longtake.data.datasets.videos import find_videos as find_videos
