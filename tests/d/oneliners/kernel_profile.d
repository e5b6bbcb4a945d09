/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles and could be enabled. */
/* flags: -q -e */
profile-997
/arg0/
{
	@[stack()] = count();
}
END
{
	trunc(@, 20);
}
