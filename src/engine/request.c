#include "engine/request.h"

#include "base/json.h"
#include "base/number.h"

int64_t request_output(const struct llm *llm, const struct job_config *config, const char *model,
		       int64_t usual)
{
	int64_t part = llm_window(llm, model) / REQUEST_WINDOW_PART;
	int64_t most = usual > part ? usual : part;

	return config->max_output_tokens ? int64_min(config->max_output_tokens, most) : usual;
}

void request_use_settings(struct llm_request *request, const struct job_config *config)
{
	struct llm_sampling *sampling = &request->sampling;

	if (config->max_output_tokens)
		request->max_tokens = int64_min(request->max_tokens, config->max_output_tokens);
	if (!sampling->with_temperature) {
		sampling->with_temperature = config->sampling.with_temperature;
		sampling->temperature = config->sampling.temperature;
	}
	if (!sampling->stop_count) {
		sampling->stops = config->sampling.stops;
		sampling->stop_count = config->sampling.stop_count;
	}
}

const struct prompt_set *request_prompts(const struct llm *llm, const struct job_config *config,
					 const char *model)
{
	return config->prompts ? config->prompts : prompt_set_for(model, llm_window(llm, model));
}

void request_tell(const struct llm *llm, const struct job_config *config, const char *model,
		  int64_t usual, json_t *object)
{
	const struct llm_sampling *sampling = &config->sampling;
	json_t *stops = json_array();

	for (size_t i = 0; i < sampling->stop_count; i++)
		json_array_append_new(stops, json_from_text(text_of(sampling->stops[i])));
	json_object_set_new(object, "maxOutputTokens",
			    json_integer(request_output(llm, config, model, usual)));
	json_object_set_new(object, "temperature",
			    sampling->with_temperature ? json_real(sampling->temperature)
						       : json_null());
	json_object_set_new(object, "stop", stops);
	json_object_set_new(object, "promptProfile",
			    json_from_text(text_of(request_prompts(llm, config, model)->name)));
}
