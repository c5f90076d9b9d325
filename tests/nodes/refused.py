"""The operators ONNX has tests of, and which of the cases in the sample are refused: exactly these."""

#: the version of the onnx package whose cases these are
LISTED_FOR = "1.23.2"

OPERATORS = tuple(
    """
    Abs Acos Acosh Adagrad Adam Add AffineGrid And ArgMax ArgMin ArrayFeatureExtractor Asin Asinh Atan Atanh
    Attention AveragePool BatchNormalization Bernoulli Binarizer BitCast BitShift BitwiseAnd BitwiseNot BitwiseOr
    BitwiseXor BlackmanWindow Cast CastLike CausalConvWithState Ceil Celu CenterCropPad Clip Col2Im Compress Concat
    Constant ConstantOfShape Conv ConvInteger ConvTranspose Cos Cosh CumProd CumSum DFT DeformConv DepthToSpace
    DequantizeLinear Det Div Dropout DynamicQuantizeLinear Einsum Elu Equal Erf Exp Expand EyeLike Flatten
    FlexAttention Floor GRU Gather GatherElements GatherND Gelu Gemm GlobalAveragePool GlobalMaxPool Greater
    GreaterOrEqual GridSample GroupNormalization HammingWindow HannWindow HardSigmoid HardSwish Hardmax Identity If
    ImageDecoder InstanceNormalization IsInf IsNaN LRN LSTM LayerNormalization LeakyRelu Less LessOrEqual
    LinearAttention Log LogSoftmax Loop LpNormalization LpPool MatMul MatMulInteger Max MaxPool MaxUnpool Mean
    MeanVarianceNormalization MelWeightMatrix Min Mish Mod Momentum Mul Neg NegativeLogLikelihoodLoss
    NonMaxSuppression NonZero Not OneHot OptionalGetElement OptionalHasElement Or PRelu Pad Pow QLinearConv
    QLinearMatMul QuantizeLinear RMSNormalization RNN Range Reciprocal ReduceL1 ReduceL2 ReduceLogSum
    ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare Relu Reshape Resize
    ReverseSequence RoiAlign RotaryEmbedding Round STFT Scan Scatter ScatterElements ScatterND Selu Shape Shrink
    Sigmoid Sign Sin Sinh Size Slice Softmax SoftmaxCrossEntropyLoss Softplus Softsign SpaceToDepth Split Sqrt
    Squeeze Sub Sum SwiGLU Swish Tan Tanh TensorScatter TfIdfVectorizer ThresholdedRelu Tile TopK Transpose
    TreeEnsemble Trilu Unique Unsqueeze Upsample Where Xor
    """.split()
)

#: refused by the import with a ModelError; cases_of(op) is the sample
REFUSED = frozenset(
    """
    test_adagrad test_adagrad_multiple test_adam test_adam_multiple
    test_basic_deform_conv_with_padding test_basic_deform_conv_without_padding
    test_batchnorm_epsilon_training_mode test_bernoulli test_bernoulli_double test_bernoulli_seed
    test_blackmanwindow test_blackmanwindow_symmetric test_deform_conv_with_mask_bias
    test_hammingwindow test_hammingwindow_symmetric test_hannwindow test_hannwindow_symmetric
    test_image_decoder_decode_bmp_rgb test_image_decoder_decode_jpeg_grayscale test_image_decoder_decode_pnm_rgb
    test_loop11 test_maxunpool_export_with_output_shape test_melweightmatrix test_momentum test_momentum_multiple
    test_nesterov_momentum test_optional_get_element_tensor test_quantizelinear_blocked_asymmetric
    test_roialign_mode_max
    test_stft_with_window
    test_tfidfvectorizer_tf_batch_onlybigrams_skip0
    test_tfidfvectorizer_tf_batch_uniandbigrams_skip5 test_tfidfvectorizer_tf_onlybigrams_levelempty
    test_training_dropout_default_mask test_unique_sorted_with_axis
    test_unique_sorted_with_negative_axis
    """.split()
)
