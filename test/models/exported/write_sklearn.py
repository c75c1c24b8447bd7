"""Models that skl2onnx writes: write_sklearn.py [FOLDER]          needs: scikit-learn, skl2onnx

Trained on numbers drawn here. Columns of strings, numbers and texts; answers with and without ZipMap."""

import pathlib
import sys

import numpy as np
from skl2onnx import to_onnx
from skl2onnx.common.data_types import FloatTensorType, Int64TensorType, StringTensorType
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import GradientBoostingRegressor, IsolationForest, RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.svm import SVC

OUT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
RNG = np.random.default_rng(0)
ROWS = 200
NUMBERS = RNG.standard_normal((ROWS, 4)).astype(np.float32)
CITIES = RNG.choice(["Oslo", "Lima", "Kyōto", "Bonn"], (ROWS, 1)).astype(object)
LABELS = np.array(["no", "yes"], dtype=object)[(NUMBERS[:, 0] + (CITIES[:, 0] == "Lima") > 0.3).astype(int)]
WORDS = ["red", "green", "blue", "apple", "pear", "stone", "cloud", "rain"]
TEXTS = np.array([" ".join(RNG.choice(WORDS, 5)) for _ in range(ROWS)], dtype=object)


def save(name, model, inputs, **more):
    # A day of writing would make each file another one.
    made = to_onnx(model, initial_types=inputs, target_opset={"": 18, "ai.onnx.ml": 3}, **more)
    (OUT / f"{name}.onnx").write_bytes(made.SerializeToString())


def columns():
    """Strings and numbers together, as inputs of their own."""
    import pandas

    table = pandas.DataFrame({"city": CITIES[:, 0], "size": NUMBERS[:, 0], "age": NUMBERS[:, 1], "rank": RNG.integers(0, 4, ROWS)})
    before = ColumnTransformer([("city", OneHotEncoder(handle_unknown="ignore"), ["city"]),
                                ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), ["size", "age"]),
                                ("rank", OneHotEncoder(handle_unknown="ignore"), ["rank"])])
    model = make_pipeline(before, LogisticRegression()).fit(table, LABELS)
    save("sklearn_columns", model, [("city", StringTensorType([None, 1])), ("size", FloatTensorType([None, 1])),
                                    ("age", FloatTensorType([None, 1])), ("rank", Int64TensorType([None, 1]))])


def main():
    columns()
    save("sklearn_texts", make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(TEXTS, LABELS), [("text", StringTensorType([None]))])
    numbers = [("x", FloatTensorType([None, 4]))]
    save("sklearn_forest", RandomForestClassifier(5, max_depth=4, random_state=0).fit(NUMBERS, LABELS), numbers)
    save("sklearn_boosted", GradientBoostingRegressor(n_estimators=8, random_state=0).fit(NUMBERS, NUMBERS[:, 1]), numbers)
    save("sklearn_outliers", IsolationForest(n_estimators=5, max_samples=32, random_state=0).fit(NUMBERS), numbers)
    save("sklearn_vectors", SVC(probability=True, random_state=0).fit(NUMBERS[:60], LABELS[:60]), numbers)
    save("sklearn_perceptron", MLPClassifier((8,), max_iter=20, random_state=0).fit(NUMBERS, LABELS), numbers)
    save("sklearn_neighbours", KNeighborsClassifier(3).fit(NUMBERS[:50], LABELS[:50]), numbers)
    save("sklearn_ordinal", OrdinalEncoder().fit(CITIES), [("city", StringTensorType([None, 1]))])


if __name__ == "__main__":
    main()
