/* SPDX-License-Identifier: Apache-2.0 */
/* Option aggzoom: the longest bar is nearly as long as its room. */
/* flags: -q -x aggzoom */
BEGIN
{
	@ = quantize(1);
	@ = quantize(2);
	@ = quantize(4);
	exit(0);
}
/* output:


           value  ------------- Distribution ------------- count    
               0 |                                         0        
               1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@   1        
               2 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@   1        
               4 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@   1        
               8 |                                         0        

*/
