package schedlab.bank;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class PoolSizesTest {

  @Test
  void pools_follow_the_cpus() {
    assertThat(PoolSizes.of(1)).isEqualTo(new PoolSizes(16, 3, 1, 1));
    assertThat(PoolSizes.of(2)).isEqualTo(new PoolSizes(32, 5, 2, 2));
    assertThat(PoolSizes.of(64)).isEqualTo(new PoolSizes(1024, 129, 64, 4));
  }
}
