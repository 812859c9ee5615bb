"""An agent in the shape of OpenRLHF's own example of a served executor. Only its import is another one."""

from __future__ import annotations

from stenograph.integrations.openrlhf import AgentExecutor as ServedExecutor


class AgentExecutor(ServedExecutor):
    async def run_agent(self, prompt, label, session_id):  # type: ignore[no-untyped-def]
        messages = [{"role": "user", "content": prompt}]
        seen: list[int] = []
        for question in ("And in Paris?", "Thank you."):
            response = await self.client.chat.completions.create(
                model=self.model_name,
                messages=messages,
                max_tokens=self.sampling_params.max_tokens,
                temperature=self.sampling_params.temperature,
                top_p=self.sampling_params.top_p,
                logprobs=self.sampling_params.logprobs is not None,
                top_logprobs=self.sampling_params.logprobs or 1,
                extra_body={"session_id": session_id},
            )
            ids = response.token_ids
            assert ids["prompt_token_ids"][: len(seen)] == seen
            assert [entry.token_id for entry in response.choices[0].logprobs.content] == ids["completion_token_ids"]
            seen = ids["prompt_token_ids"] + ids["completion_token_ids"]
            assert len(seen) < self.max_length
            messages += [
                {"role": "assistant", "content": response.choices[0].message.content},
                {"role": "user", "content": question},
            ]
        return {"reward": 1.0, "scores": 0.5}
