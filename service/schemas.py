"""The shapes of what goes over the wire, apart from the model itself."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field


class Wish(BaseModel):
    """What a request may ask for: the query parameters of `POST /v1/optimize`."""

    # A misspelt parameter is an error, not a wish that is silently ignored.
    model_config = ConfigDict(extra="forbid", frozen=True)

    time: Annotated[
        float | None,
        Field(
            gt=0,
            allow_inf_nan=False,
            description="Seconds from reading the model to the answer; limited by the server.",
        ),
    ] = None
    objective: Annotated[
        Literal["latency", "memory", "size"] | None,
        Field(description="What is to be less: seconds, bytes while it runs, or bytes of weights. It is never slower."),
    ] = None
    runtime: Annotated[
        Literal["onnxruntime", "onnxruntime-cuda", "onnxruntime-tensorrt", "openvino"] | None,
        Field(description="What is to run the model; one that the server's machine cannot use is refused."),
    ] = None
    strategy: Annotated[Literal["backtrack", "beam"] | None, Field(description="How to search.")] = None
    alpha: Annotated[
        float | None,
        Field(
            ge=1,
            allow_inf_nan=False,
            description="How much costlier than the best so far a graph may be and still be searched from.",
        ),
    ] = None
    seed: Annotated[int | None, Field(ge=0, lt=1 << 63, description="Makes the search repeatable.")] = None
    shape: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=1000, pattern=r"^[^\x00]+$")]] | None,
        Field(
            max_length=100,
            description="Sizes of an input that has symbolic ones, as in `x:1..8,128`; may be given again for another"
            " input. Of a range, the middle, least and most are tried, and the result is slower at none. Where nobody"
            " says, likely ones at which the model runs are taken, and the report tells them.",
        ),
    ] = None
    threads: Annotated[
        int | None, Field(ge=1, description="The threads that the model will run on; measurements use as many.")
    ] = None


class ProblemDocument(BaseModel):
    """A problem (RFC 9457)."""

    type: Annotated[str, Field(description="Names the kind of problem; can be fetched.")] = "about:blank"
    title: Annotated[str, Field(description="The kind of problem, for people.")]
    status: Annotated[int, Field(description="The HTTP status.")]
    detail: Annotated[str, Field(description="What is wrong with this request.")]
    errors: Annotated[
        list[dict[str, str]] | None, Field(description="The parameters that are wrong: `name` and `detail` of each.")
    ] = None


class Health(BaseModel):
    """A server that is well."""

    status: Literal["live", "ready"]
