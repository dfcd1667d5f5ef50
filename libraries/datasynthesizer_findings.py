"""What was found in DataSynthesizer."""

from __future__ import annotations

from libraries.cases import Finding

FINDINGS: tuple[Finding, ...] = (
    Finding(
        title="The default seed makes the noise a constant",
        kind="violation",
        cases=("independent mode, default seed",),
        cause=(
            "describe_dataset_in_… and generate_dataset_in_… have seed=0 as default and pass it to "
            "random.seed and np.random.seed. The noise is then known to everybody, and the output is "
            "a function of the input: every input has one table. The notebooks call both without a "
            "seed."
        ),
        script="datasynthesizer_seed.py",
        report=(
            "DataDescriber and DataGenerator seed the generators of numpy and Python with 0 unless "
            "the caller passes a seed. Whoever knows the library knows the noise, so that epsilon "
            "protects nothing: the output is the same in every run, and two inputs that differ in one"
            " row are told apart with {independent mode, default seed} at epsilon=1 (10⁻³ error "
            "probability). A remedy is seed=None as default, and a word that a seed is for tests."
        ),
    ),
    Finding(
        title="Correlated mode takes the number of categories from the data, although a domain is given",
        kind="violation",
        cases=("correlated mode, last category of the domain",),
        cause=(
            "lib/PrivBayes.py, get_noisy_distribution_of_attributes: the cells that get noise are "
            "range(encoded_dataset[attr].max() + 1), the codes up to the largest one in the data. A "
            "category of the domain file with a larger code gets no cell and never comes out; one row"
            " that holds it gives it a cell with a noisy count."
        ),
        script="datasynthesizer_domain.py",
        report=(
            "In correlated attribute mode the noisy joint distribution has cells for the codes 0 … "
            "encoded_dataset[attr].max(), not for the domain of the attribute. With a domain file "
            "that lists u, v, w and an input without w, no synthetic table holds w; with one row more"
            " that holds w, many do: {correlated mode, last category of the domain} at epsilon=1 "
            "(10⁻³ error probability). A remedy is to use len(column.distribution_bins)."
        ),
    ),
    Finding(
        title="The noise is for all rows, the distribution of those that count",
        kind="violation",
        cases=(
            "independent mode, most values missing",
            "independent mode, most values outside the range",
        ),
        cause=(
            "datatypes/AbstractAttribute.py: inject_laplace_noise has sensitivity 2 / self.data.size,"
            " with missing values in data.size, while infer_distribution divides by the number of "
            "values that are present (and, for numbers, within the given range). With 28 of 30 values"
            " missing, one row changes the distribution ten times as much as the noise is made for."
        ),
        script="datasynthesizer_missing.py",
        report=(
            "inject_laplace_noise uses a sensitivity of 2 / n, n the number of rows, but the "
            "distribution is normalised by the number m of values that are not missing and not "
            "outside the given range; its sensitivity is 2 / m. With m = 2 and n = 30, one row more "
            "is told with {independent mode, most values missing} (missing) and {independent mode, "
            "most values outside the range} (outside the range) at epsilon=1 (10⁻³ error "
            "probability). A remedy is to add noise of scale 1 / epsilon to the counts, and to "
            "normalise afterwards."
        ),
    ),
    Finding(
        title="Whether an attribute is a key is read off the data",
        kind="violation",
        cases=("independent mode, keys inferred",),
        cause=(
            "DataDescriber.analyze_dataset_meta: an attribute that is not declared is a candidate key"
            " if is_unique holds for the input, exactly. Keys come out as 0, 1, 2, …, other "
            "attributes as values of their range, so that one duplicate changes the whole column. "
            "README names the active domain as the limit of the noise, not the kind of an attribute."
        ),
        script="datasynthesizer_keys.py",
        report=(
            "attr_to_is_candidate_key is filled with df[attr].is_unique, without noise. For 15 "
            "different integers the synthetic column is 0 … n - 1; with one row more that repeats one"
            " of them it holds values from 100 to 114: {independent mode, keys inferred} at epsilon=1"
            " (10⁻³ error probability). The same holds for is_categorical (the number of distinct "
            "values against category_threshold). A remedy is to require a declaration if epsilon > 0."
            " Beside: the caller's dictionaries are filled in place, so that a second call with the "
            "same dictionary uses what was inferred from the first input."
        ),
    ),
    Finding(
        title="Without a given domain, categories and ranges are those of the data",
        kind="documented limit",
        cases=("independent mode, categories inferred", "independent mode, range inferred"),
        cause=(
            "README: DataSynthesizer injects noises into the statistics within active domain that are"
            " the values presented in the table. A value that one row holds comes out, or cannot. "
            "Pass categorical_attribute_domain_file and numerical_attribute_ranges."
        ),
        known="https://arxiv.org/abs/2405.10994",
        script="datasynthesizer_active.py",
    ),
)
