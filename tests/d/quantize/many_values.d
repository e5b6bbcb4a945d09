/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 37: a triangle of counts. */
int i;
tick-1ms
/i < 100/
{
	@ = quantize(i);
	i++;
}
tick-1ms
/i == 100/
{
	exit(0);
}
/* output:


           value  ------------- Distribution ------------- count    
              -1 |                                         0        
               0 |                                         1        
               1 |                                         1        
               2 |@                                        2        
               4 |@@                                       4        
               8 |@@@                                      8        
              16 |@@@@@@                                   16       
              32 |@@@@@@@@@@@@@                            32       
              64 |@@@@@@@@@@@@@@                           36       
             128 |                                         0        

*/
