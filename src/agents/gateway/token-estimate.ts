import type { ModelRequest } from "./wire.ts";

/** The most tokens that providers bill for an image. */
const imageTokens = 5_000;
/** Number of levels of a request that are searched for images. */
const maxDepth = 32;
/** Bytes of text per token in ordinary text. */
const bytesPerToken = 4;

/**
 * The most input tokens that a request can have, because each token stands for at least one byte of text. An image counts as `imageTokens`, whatever
 * its size.
 */
export const maxInputTokens = (request: ModelRequest, bytes: number): number => {
  const images = sizeOfImages(request.body);
  return Math.max(0, bytes - images.bytes) + images.count * imageTokens;
};

/** The likely number of input tokens of a request. */
export const likelyInputTokens = (request: ModelRequest, bytes: number): number => {
  const images = sizeOfImages(request.body);
  return Math.ceil(Math.max(0, bytes - images.bytes) / bytesPerToken) + images.count * imageTokens;
};

/** The likely number of tokens in this many characters of an answer. */
export const likelyOutputTokens = (chars: number): number => Math.ceil(chars / bytesPerToken);

const none = { count: 0, bytes: 0 };

/**
 * How many images a part of a request contains, and how many bytes they have. Images with fewer bytes than `imageTokens` count as text. `isImage`: if
 * `value` is a string, it is the data of an image.
 */
function sizeOfImages(value: unknown, isImage = false, depth = 0): { count: number; bytes: number } {
  if (typeof value === "string") {
    const isDataUrl = value.startsWith("data:image/");
    if (!isDataUrl && !isImage) return none;
    const data = isDataUrl ? value.slice(value.indexOf(",") + 1) : value;
    const isBase64 = /^[\w+/=-]+$/.test(data);
    return isBase64 && data.length > imageTokens ? { count: 1, bytes: data.length } : none;
  }
  if (value === null || typeof value !== "object" || depth > maxDepth) return none;
  const holdsImage = Object.values(value).some((each) => typeof each === "string" && /^image\/\w/.test(each));
  const sum = { count: 0, bytes: 0 };
  for (const each of Object.values(value)) {
    const size = sizeOfImages(each, holdsImage && !Array.isArray(value), depth + 1);
    sum.count += size.count;
    sum.bytes += size.bytes;
  }
  return sum;
}
