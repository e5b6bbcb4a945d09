/* SPDX-License-Identifier: Apache-2.0 */
/* Units from ns to d. */
/* flags: -q -e */
tick-1000000ns, tick-1000us, tick-10ms, tick-1s, tick-1sec, tick-1m, tick-1hour, tick-1d, tick-9hz
{
	exit(0);
}
