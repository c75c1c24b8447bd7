"""Models that tf2onnx writes: write_tensorflow.py [FOLDER]          needs: tensorflow-cpu, tf2onnx

Loops with TensorArrays, branches, recurrent layers and images, with sizes open."""

import pathlib
import sys

import numpy as np
import tensorflow as tf
import tf2onnx

OUT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
tf.keras.utils.set_random_seed(0)


def save(name, function, *specs, opset=17):
    signature = [tf.TensorSpec(shape, dtype, name=n) for n, shape, dtype in specs]
    tf2onnx.convert.from_function(tf.function(function, input_signature=signature), input_signature=signature, opset=opset,
                                  output_path=str(OUT / f"{name}.onnx"))


def running_products(x, start):
    """A loop that reads rows and writes states into a TensorArray."""
    array = tf.TensorArray(tf.float32, size=tf.shape(x)[0], element_shape=[None])

    def body(i, state, array):
        state = state * 0.5 + x[i]
        return i + 1, state, array.write(i, state)

    _, last, array = tf.while_loop(lambda i, *_: i < tf.shape(x)[0], body, (0, start, array))
    return array.stack(), last


def until(x, limit):
    """A loop that ends when its sum is large enough."""
    i, total = tf.while_loop(lambda i, total: tf.logical_and(i < tf.shape(x)[0], total < limit),
                             lambda i, total: (i + 1, total + tf.reduce_sum(x[i])), (0, tf.constant(0.0)))
    return i, total


def mapped(x):
    """A function of each row, by map_fn."""
    return tf.map_fn(lambda row: tf.sort(row) - tf.reduce_mean(row), x)


def branch(x, flag):
    return tf.cond(flag, lambda: tf.nn.softmax(x), lambda: tf.cumsum(x, axis=1))


def recurrent(kind):
    layer = tf.keras.layers.Bidirectional(kind(6, return_sequences=True))
    layer.build((None, None, 5))
    return lambda x: layer(x)


def image():
    layers = [tf.keras.layers.Conv2D(8, 3, strides=2, padding="same", activation="relu6"), tf.keras.layers.DepthwiseConv2D(3, padding="same"),
              tf.keras.layers.BatchNormalization(), tf.keras.layers.MaxPool2D(2, padding="same")]

    def call(x):
        for layer in layers:
            x = layer(x)
        return tf.reduce_mean(tf.image.resize(x, 2 * tf.shape(x)[1:3]), axis=[1, 2])

    call(tf.zeros((1, 16, 16, 3)))
    return call


def detected(boxes, scores):
    """Boxes by NMS: as many as there are."""
    kept = tf.image.non_max_suppression(boxes, scores, 20, iou_threshold=0.5, score_threshold=0.3)
    return tf.gather(boxes, kept), tf.gather(scores, kept)


def ragged(x):
    """Where, gather_nd and unique: sizes that values decide."""
    where = tf.where(x > 0)
    values, at, counts = tf.unique_with_counts(tf.gather_nd(x, where))
    return where, values, counts


def main():
    save("tf_running", running_products, ("x", [None, None], tf.float32), ("start", [None], tf.float32))
    save("tf_until", until, ("x", [None, 3], tf.float32), ("limit", [], tf.float32))
    save("tf_mapped", mapped, ("x", [None, None], tf.float32))
    save("tf_branch", branch, ("x", [None, 4], tf.float32), ("flag", [], tf.bool))
    save("tf_lstm", recurrent(tf.keras.layers.LSTM), ("x", [None, None, 5], tf.float32))
    save("tf_gru", recurrent(tf.keras.layers.GRU), ("x", [None, None, 5], tf.float32))
    save("tf_image", image(), ("x", [None, None, None, 3], tf.float32))
    save("tf_detected", detected, ("boxes", [None, 4], tf.float32), ("scores", [None], tf.float32))
    save("tf_ragged", ragged, ("x", [None, None], tf.float32))


if __name__ == "__main__":
    main()
