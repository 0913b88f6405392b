"""A linear-chain conditional random field: how likely a row of tags is, and the likeliest row."""

from __future__ import annotations

import torch

#: Transitions that differ by no more (in nats) are summed by a matrix product: what it loses to underflow is
#: smaller than a single-precision number can hold.
NARROW = 40.0


def exact(scores: torch.Tensor) -> torch.Tensor:
    """In single precision at least, where sums of exponentials neither overflow nor lose what matters."""
    return scores.to(torch.promote_types(scores.dtype, torch.float32))


class Crf(torch.nn.Module):
    """Scores of neighbouring tags, of first and of last ones; `transition[i, j]` is that of j after i.

    Units of a row that count (`mask`) come first, and there is at least one.
    """

    def __init__(self, labels: int) -> None:
        super().__init__()
        self.start = torch.nn.Parameter(torch.empty(labels).uniform_(-0.1, 0.1))
        self.end = torch.nn.Parameter(torch.empty(labels).uniform_(-0.1, 0.1))
        self.transition = torch.nn.Parameter(torch.empty(labels, labels).uniform_(-0.1, 0.1))

    def log_likelihood(self, emissions: torch.Tensor, tags: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """log p(tags) of each row. Shape: (batch, units, labels), (batch, units) twice, to (batch,)."""
        emissions = exact(emissions)
        # Autocast would make the matrix product one of half precision, where small odds vanish.
        with torch.autocast(emissions.device.type, enabled=False):
            return self._path(emissions, tags, mask) - self._total(emissions, mask)

    def _path(self, emissions: torch.Tensor, tags: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """The score of one row of tags. Shape: (batch,)."""
        tags = tags.masked_fill(~mask, 0)
        last = tags.gather(1, mask.sum(1, keepdim=True) - 1).squeeze(1)
        emitted = emissions.gather(2, tags[..., None]).squeeze(2).masked_fill(~mask, 0).sum(1)
        moved = self.transition[tags[:, :-1], tags[:, 1:]].masked_fill(~mask[:, 1:], 0).sum(1)
        return self.start[tags[:, 0]] + emitted + moved + self.end[last]

    def _total(self, emissions: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """log Σ exp score over all rows of tags. Shape: (batch,)."""
        move = exact(self.transition)
        top = move.detach().max()
        narrow = bool(top - move.detach().min() <= NARROW)
        odds = (move - top).exp()
        alpha = self.start + emissions[:, 0]
        for now, there in zip(emissions.unbind(1)[1:], mask.unbind(1)[1:], strict=True):
            if narrow:
                peak = alpha.detach().amax(1, keepdim=True)
                reached = ((alpha - peak).exp() @ odds).log() + peak + top
            else:
                reached = torch.logsumexp(alpha[:, :, None] + move, 1)
            alpha = torch.where(there[:, None], reached + now, alpha)
        return torch.logsumexp(alpha + self.end, 1)

    @torch.no_grad()
    def decode(self, emissions: torch.Tensor, mask: torch.Tensor) -> list[list[int]]:
        """The likeliest tags of each row's units (Viterbi). Shape: (batch, units, labels), (batch, units)."""
        emissions = exact(emissions)
        alpha = self.start + emissions[:, 0]
        same = torch.arange(alpha.shape[1], device=alpha.device)
        steps = []
        for now, there in zip(emissions.unbind(1)[1:], mask.unbind(1)[1:], strict=True):
            best, came = (alpha[:, :, None] + self.transition).max(1)
            alpha = torch.where(there[:, None], best + now, alpha)
            # Beyond a row's end a tag comes from itself, so that all rows are traced back together.
            steps.append(torch.where(there[:, None], came, same))
        tag = (alpha + self.end).argmax(1, keepdim=True)
        path = [tag]
        for came in reversed(steps):
            path.append(came.gather(1, path[-1]))
        rows = torch.cat(path[::-1], 1).tolist()
        return [row[:length] for row, length in zip(rows, mask.sum(1).tolist(), strict=True)]
