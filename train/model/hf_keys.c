/* hf_keys.c: the keys that PretrainedConfig, GPT2Config, LlamaConfig and GenerationConfig of
 * transformers 2.11, 3.5, 4.0, 4.20, 4.28, 4.33, 4.37, 4.45, 4.51, 4.57, 5.0 and 5.23 use. */
#include "train/model/hf_keys.h"

#include <stddef.h>
#include <string.h>

static const char *const harmless[] = {
	/* origin of the model, storage of its weights */
	"_commit_hash", "_name_or_path", "architectures", "dtype", "is_llama_config", "model_type", "name_or_path",
	"torch_dtype", "transformers.js_config", "transformers_version", "unsloth_fixed", "unsloth_version",
	/* how it is run: equal results except for rounding */
	"_attn_implementation", "_attn_implementation_autoset", "_attn_implementation_internal", "_experts_implementation",
	"_experts_implementation_internal", "_flash_attn_2_enabled", "attn_implementation", "chunk_size_feed_forward",
	"experts_implementation", "output_attentions", "output_hidden_states", "output_past", "output_scores",
	"pretraining_tp", "reorder_and_upcast_attn", "return_dict", "return_dict_in_generate", "tie_last_hidden_states",
	"torchscript", "use_bfloat16", "use_cache", "use_return_dict", "xla_device",
	/* how it was or would be trained */
	"attention_dropout", "attn_pdrop", "embd_pdrop", "gradient_checkpointing", "hidden_dropout", "initializer_range",
	"neftune_noise_alpha", "resid_pdrop", "residual_dropout", "tf_legacy_loss",
	/* sizes without effect */
	"max_sequence_length", "model_max_length", "n_ctx",
	/* tokens */
	"bos_token_id", "decoder_start_token_id", "eos_token_id", "pad_token_id", "sep_token_id", "tokenizer_class",
	/* classification and other tasks */
	"classifier_dropout", "finetuning_task", "id2label", "label2id", "num_labels", "predict_special_tokens", "prefix",
	"problem_type", "summary_activation", "summary_first_dropout", "summary_proj_to_labels", "summary_type",
	"summary_use_proj", "task_specific_params",
	/* of encoder-decoder pairs; without effect on a decoder alone */
	"cross_attention_hidden_size", "is_decoder", "tie_encoder_decoder",
	/* how text is generated */
	"assistant_confidence_threshold", "assistant_early_exit", "assistant_lookbehind", "bad_words_ids",
	"begin_suppress_tokens", "cache_config", "cache_implementation", "compile_config", "constraints", "disable_compile",
	"diversity_penalty", "do_sample", "dola_layers", "early_stopping", "encoder_no_repeat_ngram_size",
	"encoder_repetition_penalty", "epsilon_cutoff", "eta_cutoff", "exponential_decay_length_penalty", "force_words_ids",
	"forced_bos_token_id", "forced_decoder_ids", "forced_eos_token_id", "generation_kwargs", "guidance_scale",
	"is_assistant", "length_penalty", "low_memory", "max_length", "max_matching_ngram_size", "max_new_tokens",
	"max_time", "min_length", "min_new_tokens", "min_p", "no_repeat_ngram_size", "num_assistant_tokens",
	"num_assistant_tokens_schedule", "num_beam_groups", "num_beams", "num_return_sequences", "output_logits",
	"penalty_alpha", "prefill_chunk_size", "prompt_lookup_num_tokens", "remove_invalid_values", "renormalize_logits",
	"repetition_penalty", "return_legacy_cache", "sequence_bias", "stop_strings", "suppress_tokens",
	"target_lookbehind", "temperature", "token_healing", "top_h", "top_k", "top_p", "trust_remote_code", "typical_p",
	"use_model_defaults", "watermarking_config"};

#define QUANTIZED                                                                                                      \
	"the weights are quantized, and only F32, BF16 and F16 are read; give a copy that is not (in transformers: "       \
	"model.dequantize(), then save_pretrained)"

static const struct {
	const char *key, *why;
} refused[] = {
	{"compression_config", QUANTIZED},
	{"quantization", QUANTIZED},
	{"quantization_config", QUANTIZED},
	{"auto_map", "the model comes with code of its own, which is not run; remove the key from the file if it computes "
				 "what transformers computes for this model_type"},
};

bool hf_key_is_harmless(const char *key) {
	for (size_t i = 0; i < sizeof harmless / sizeof harmless[0]; i++)
		if (strcmp(harmless[i], key) == 0)
			return true;
	return false;
}

const char *hf_key_why(const char *key) {
	for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
		if (strcmp(refused[i].key, key) == 0)
			return refused[i].why;
	return "a key that is not known here, and that may change what the model computes; remove it from the file if it "
		   "does not";
}

void hf_check_rest(struct hf_fields *f) {
	hf_expect_bool(f, "add_cross_attention", false, false);
	hf_expect_bool(f, "is_causal", true, true);
	hf_expect_bool(f, "is_encoder_decoder", false, false);
	hf_expect_empty(f, "pruned_heads");
	hf_refuse_unread(f);
}
